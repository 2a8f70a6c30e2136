#include "tuner/search/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/suggest.h"
#include "tuner/search/learnt_prior.h"

namespace roofgen {
namespace {

/// Tries the points in an order that is fixed before the first result.
class FixedOrder final : public Strategy {
 public:
  FixedOrder(std::vector<size_t> order, size_t preset) : order_(std::move(order)) { std::erase(order_, preset); }
  std::vector<size_t> ask(size_t n) override {
    const size_t begin = next_;
    next_ = std::min(order_.size(), begin + n);
    return {order_.begin() + static_cast<ptrdiff_t>(begin), order_.begin() + static_cast<ptrdiff_t>(next_)};
  }
  void tell(size_t, const TrialResult&) override {}

 private:
  std::vector<size_t> order_;
  size_t next_ = 0;
};

std::vector<size_t> all_points(const SearchSpace& space) {
  std::vector<size_t> order(space.predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

std::vector<size_t> best_first(const std::vector<double>& predicted) {
  std::vector<size_t> order(predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return predicted[a] < predicted[b]; });
  return order;
}

/// Asks for a first sample that has all parameter values, each with the best prior, then for the best by the prior as
/// the results correct it.
class LearntOrder final : public Strategy {
 public:
  explicit LearntOrder(const SearchSpace& space) : predicted_(space.predicted) {
    for (size_t i = 0; i < space.predicted.size(); ++i) {
      LearntPrior::Params params;
      for (const auto& [name, value] : space.points[i].schedule.params) params.emplace_back(name, to_string(value));
      prior_.add(space.predicted[i], params);
      params_.push_back(std::move(params));
    }
    for (const size_t i : best_first(predicted_))
      if (i != space.preset) left_.push_back(i);
    seen_.insert(params_[space.preset].begin(), params_[space.preset].end());
  }

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    if (!std::exchange(sampled_, true)) out = sample(std::min(n / 3, kSample));
    if (out.empty()) {
      std::stable_sort(left_.begin(), left_.end(),
                       [&](size_t a, size_t b) { return prior_.corrected(a) < prior_.corrected(b); });
      const size_t take = std::min({n, left_.size(), std::max<size_t>(kLeastRound, n / 2)});
      out.assign(left_.begin(), left_.begin() + static_cast<ptrdiff_t>(take));
    }
    std::erase_if(left_, [&](size_t i) { return std::find(out.begin(), out.end(), i) != out.end(); });
    return out;
  }

  void tell(size_t point, const TrialResult& result) override {
    if (result.failed.empty() && result.seconds > 0) prior_.learn(point, result.seconds);
  }

 private:
  /// Points of the first sample at most, besides the default; the least that a later round asks for.
  static constexpr size_t kSample = 8, kLeastRound = 4;
  /// Points that the prior finds this many times as slow as the fastest one teach too little about the fast ones: twice
  /// the closed form's error.
  static constexpr double kHopelessRatio = 1.7;

  /// The points that add the most parameter values to those seen, among equals the best by the prior.
  std::vector<size_t> sample(size_t n) {
    std::vector<size_t> out;
    const double most_seconds = left_.empty() ? 0 : kHopelessRatio * predicted_[left_.front()];
    while (out.size() < n) {
      size_t most = 0, best = 0;
      for (const size_t i : left_) {
        if (predicted_[i] > most_seconds) break;
        const auto fresh = static_cast<size_t>(
            std::count_if(params_[i].begin(), params_[i].end(), [&](const auto& v) { return !seen_.count(v); }));
        if (fresh > most) most = fresh, best = i;
      }
      if (most == 0) break;
      out.push_back(best);
      seen_.insert(params_[best].begin(), params_[best].end());
    }
    return out;
  }

  const std::vector<double>& predicted_;
  LearntPrior prior_;
  std::vector<LearntPrior::Params> params_;             ///< by point
  std::vector<size_t> left_;                            ///< neither asked for nor the default, best first
  std::set<std::pair<std::string, std::string>> seen_;  ///< parameter values of the first sample
  bool sampled_ = false;
};

std::unique_ptr<Strategy> by_learnt_prior(const SearchSpace& space, uint64_t) {
  return std::make_unique<LearntOrder>(space);
}

std::unique_ptr<Strategy> by_prior(const SearchSpace& space, uint64_t) {
  return std::make_unique<FixedOrder>(best_first(space.predicted), space.preset);
}

/// splitmix64 (Steele, Lea, Flood 2014), so that a seed gives the same order with every standard library.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::unique_ptr<Strategy> shuffled(const SearchSpace& space, uint64_t seed) {
  std::vector<size_t> order = all_points(space);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_random(seed) % i]);
  return std::make_unique<FixedOrder>(std::move(order), space.preset);
}

}  // namespace

const std::vector<StrategyKind>& strategies() {
  static const std::vector<StrategyKind> kTable = {
      {"prior", "the points that the closed-form prior ranks best", false, by_learnt_prior},
      {"exhaustive", "every legal point, best prior first", true, by_prior},
      {"random", "a random sample: the baseline for every other strategy", false, shuffled},
  };
  return kTable;
}

std::string strategy_names() {
  std::string out;
  for (const StrategyKind& s : strategies())
    out += (out.empty() ? "" : &s == &strategies().back() ? " or " : ", ") + std::string(s.name);
  return out;
}

Result<const StrategyKind*> find_strategy(const std::string& name) {
  std::vector<std::string> names;
  for (const StrategyKind& s : strategies()) {
    if (name == s.name) return &s;
    names.emplace_back(s.name);
  }
  return Error{Exit::kUsage, fmt::format("unknown strategy \"{}\"{}", name, did_you_mean(name, names))};
}

}  // namespace roofgen
