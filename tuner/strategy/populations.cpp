// Strategies that combine points of a population. Each result at once takes the place of a slower member.
#include <algorithm>
#include <cmath>
#include <map>

#include "tuner/strategy/history.h"
#include "tuner/strategy/kinds.h"

namespace roofgen {
namespace {

constexpr size_t kMembers = 20;

class Population : public Strategy {
 public:
  Population(const SearchSpace& space, uint64_t seed) : space_(space), random_(seed), history_(space.points.size()) {}

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    while (out.size() < n && history_.left() > 0) {
      const bool first = history_.points().size() + out.size() < kMembers || members_.size() < 4;
      const size_t point = first ? history_.draw(random_) : untaken_child();
      history_.take(point);
      out.push_back(point);
    }
    return out;
  }

  void tell(size_t point, const TrialResult& result) override {
    history_.tell(point, result);
    const Member member{point, history_.logs().back()};
    if (std::isinf(member.log)) return;
    if (members_.size() < kMembers) {
      members_.push_back(member);
    } else if (Member& rival = members_[loser_to(point)]; member.log < rival.log) {
      rival = member;
    }
  }

 protected:
  struct Member {
    size_t point;
    double log;
  };
  using Row = std::vector<uint16_t>;

  virtual Row child() = 0;
  /// The member whose place a new point takes if it is faster.
  virtual size_t loser_to(size_t) {
    return static_cast<size_t>(std::ranges::max_element(members_, {}, &Member::log) - members_.begin());
  }
  const std::vector<Axis>& axes() const { return space_.points.axes(); }
  std::span<const uint16_t> row(const Member& member) const { return space_.points.row(member.point); }

  const SearchSpace& space_;
  Random random_;
  std::vector<Member> members_;

 private:
  /// A child that is legal and new; after some tries, a neighbour of one of the members.
  size_t untaken_child() {
    for (int tries = 0; tries < 20; ++tries)
      if (const std::optional<size_t> point = space_.points.find(child()); point && !history_.taken(*point))
        return *point;
    for (int tries = 0; tries < 20; ++tries) {
      const std::vector<size_t> around = space_.points.neighbours(members_[random_.below(members_.size())].point);
      if (around.empty()) continue;
      if (const size_t point = around[random_.below(around.size())]; !history_.taken(point)) return point;
    }
    return history_.draw(random_);
  }

  History history_;
};

/// Each value comes from one of two parents, or is a random one. Parents: the faster of two members.
class Genetic final : public Population {
  using Population::Population;

  Row child() override {
    const auto left = row(parent()), right = row(parent());
    Row out(axes().size());
    for (size_t axis = 0; axis < out.size(); ++axis) {
      out[axis] = random_.below(2) ? left[axis] : right[axis];
      if (random_.below(out.size()) == 0) out[axis] = static_cast<uint16_t>(random_.below(axes()[axis].size()));
    }
    return out;
  }

  const Member& parent() {
    const Member& a = members_[random_.below(members_.size())];
    const Member& b = members_[random_.below(members_.size())];
    return a.log < b.log ? a : b;
  }
};

/// A member moved towards the best one and by the difference of two others, by indices of values (Storn, Price 1997;
/// DE/target-to-best/1/bin). The child competes with that member.
class DifferentialEvolution final : public Population {
  using Population::Population;
  static constexpr double kWeight = 0.7, kCross = 0.7;

  Row child() override {
    const size_t target = random_.below(members_.size());
    const auto best = row(*std::ranges::min_element(members_, {}, &Member::log));
    const auto plus = row(member()), minus = row(member()), own = row(members_[target]);
    const size_t sure = random_.below(axes().size());
    Row out(axes().size());
    for (size_t axis = 0; axis < out.size(); ++axis) {
      const double place = own[axis] + kWeight * (best[axis] - own[axis]) + kWeight * (plus[axis] - minus[axis]);
      const double last = static_cast<double>(axes()[axis].size() - 1);
      const bool cross = axis == sure || random_.unit() < kCross;
      out[axis] = cross ? static_cast<uint16_t>(std::clamp(std::round(place), 0.0, last)) : own[axis];
    }
    if (const std::optional<size_t> point = space_.points.find(out)) targets_[*point] = target;
    return out;
  }

  size_t loser_to(size_t point) override {
    const auto target = targets_.find(point);
    return target == targets_.end() ? Population::loser_to(point) : target->second;
  }

  const Member& member() { return members_[random_.below(members_.size())]; }

  std::map<size_t, size_t> targets_;  ///< of each child
};

}  // namespace

std::unique_ptr<Strategy> genetic(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<Genetic>(space, seed);
}

std::unique_ptr<Strategy> differential_evolution(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<DifferentialEvolution>(space, seed);
}

}  // namespace roofgen
