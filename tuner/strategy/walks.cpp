// Strategies that walk from a point to its neighbours.
#include <cmath>
#include <deque>

#include "tuner/strategy/history.h"
#include "tuner/strategy/kinds.h"

namespace roofgen {
namespace {

constexpr size_t kFirst = 20;  ///< random points; a local search starts at the best of them

class Walk : public Strategy {
 public:
  Walk(const SearchSpace& space, uint64_t seed) : space_(space), history_(space.points.size()), random_(seed) {}

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    while (out.size() < n && history_.left() > 0) {
      out.push_back(next());
      history_.take(out.back());
    }
    return out;
  }

 protected:
  virtual size_t next() = 0;  ///< an untaken point

  const SearchSpace& space_;
  History history_;
  Random random_;
};

/// Moves to the first neighbour that is faster. Where none is, it starts again at the best point after a few random
/// steps (iterated local search; Lourenco, Martin, Stützle 2003).
class LocalSearch final : public Walk {
 public:
  using Walk::Walk;

  void tell(size_t point, const TrialResult& result) override {
    history_.tell(point, result);
    const double log = history_.logs().back();
    if (history_.points().size() < kFirst) return;
    if (history_.points().size() == kFirst && history_.best()) {
      move(history_.points()[*history_.best()], history_.logs()[*history_.best()]);
    } else if (log < here_) {
      move(point, log);
    }
  }

 private:
  static constexpr size_t kKick = 2;  ///< steps from the best point to the next start

  void move(size_t point, double log) {
    here_ = log;
    const std::vector<size_t> all = space_.points.neighbours(point);
    queue_.assign(all.begin(), all.end());
    for (size_t i = queue_.size(); i > 1; --i) std::swap(queue_[i - 1], queue_[random_.below(i)]);
  }

  size_t next() override {
    if (history_.points().size() < kFirst) return history_.draw(random_);
    while (!queue_.empty()) {
      const size_t point = queue_.front();
      queue_.pop_front();
      if (!history_.taken(point)) return point;
    }
    if (!history_.best()) return history_.draw(random_);
    here_ = HUGE_VAL;  // the walk goes on from the new start, however slow it is
    size_t at = history_.points()[*history_.best()];
    for (size_t step = 0; step < kKick || (history_.taken(at) && step < 8 * kKick); ++step) {
      const std::vector<size_t> around = space_.points.neighbours(at);
      if (around.empty()) break;
      at = around[random_.below(around.size())];
    }
    return history_.taken(at) ? history_.draw(random_) : at;
  }

  double here_ = HUGE_VAL;  ///< logarithm of the time of the walk's point
  std::deque<size_t> queue_;
};

/// Moves to a random neighbour: always to a faster one, to a slower one the less often the slower it is and the longer
/// the walk has taken (Kirkpatrick, Gelatt, Vecchi 1983).
class Annealing final : public Walk {
 public:
  using Walk::Walk;

  void tell(size_t point, const TrialResult& result) override {
    history_.tell(point, result);
    const double log = history_.logs().back();
    temperature_ *= kCooling;
    if (std::isinf(log)) return;
    if (at_ && log > here_ && random_.unit() >= std::exp((here_ - log) / temperature_)) return;
    at_ = point;
    here_ = log;
  }

 private:
  static constexpr double kHottest = 0.5, kCooling = 0.98;  ///< in logarithms of times, for each result

  size_t next() override {
    if (!at_) return history_.draw(random_);
    std::vector<size_t> around = space_.points.neighbours(*at_);
    std::erase_if(around, [&](size_t point) { return history_.taken(point); });
    return around.empty() ? history_.draw(random_) : around[random_.below(around.size())];
  }

  std::optional<size_t> at_;
  double here_ = 0, temperature_ = kHottest;
};

}  // namespace

std::unique_ptr<Strategy> local_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<LocalSearch>(space, seed);
}

std::unique_ptr<Strategy> simulated_annealing(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<Annealing>(space, seed);
}

}  // namespace roofgen
