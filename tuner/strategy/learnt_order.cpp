// The strategy `prior`.
#include <algorithm>
#include <numeric>
#include <utility>

#include "tuner/strategy/history.h"
#include "tuner/strategy/kinds.h"
#include "tuner/strategy/learnt_prior.h"

namespace roofgen {
namespace {

// Choices, not fitted: points of the first sample at most, besides the default; the least that a later round asks for.
constexpr size_t kSample = 8, kLeastRound = 4;
/// Points that the prior finds this many times as slow as the fastest one teach too little about the fast ones: twice
/// the closed form's error.
constexpr double kHopelessRatio = 1.7;

/// Asks for a first sample that has many parameter values, each with the best prior, then for the best by the prior as
/// the results correct it.
class LearntOrder final : public Strategy {
 public:
  explicit LearntOrder(const SearchSpace& space)
      : space_(space), history_(space.points.size()), order_(space.points.size()) {
    uint32_t values = 0;
    for (const Axis& axis : space.points.axes()) {
      first_value_.push_back(values);
      values += static_cast<uint32_t>(axis.size());
    }
    seen_.resize(values);
    for (size_t point = 0; point < order_.size(); ++point) prior_.add(seconds(point), values_of(point));
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, {}, [&](size_t point) { return seconds(point); });
    if (space.preset) {
      history_.take(*space.preset);
      see(*space.preset);
    }
  }

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    if (!std::exchange(sampled_, true)) out = sample(std::min(n / 3, kSample));
    if (!out.empty()) return out;
    // The order that the results correct; half of what is wanted, so that the rest learns from it.
    std::erase_if(order_, [&](size_t point) { return history_.taken(point); });
    std::ranges::stable_sort(order_, {}, [&](size_t point) { return prior_.corrected(point); });
    out.assign(order_.begin(),
               order_.begin() + static_cast<ptrdiff_t>(std::min({n, order_.size(), std::max(kLeastRound, n / 2)})));
    for (const size_t point : out) history_.take(point);
    return out;
  }

  void tell(size_t point, const TrialResult& result) override {
    history_.take(point);
    if (!result.failed && result.seconds > 0) prior_.learn(point, result.seconds);
  }

 private:
  double seconds(size_t point) const { return space_.predicted.empty() ? 1 : space_.predicted[point]; }
  LearntPrior::Values values_of(size_t point) const {
    LearntPrior::Values out;
    for (size_t axis = 0; axis < first_value_.size(); ++axis)
      out.push_back(first_value_[axis] + space_.points.row(point)[axis]);
    return out;
  }
  void see(size_t point) {
    for (const uint32_t value : values_of(point)) seen_[value] = true;
  }

  /// The points that add the most parameter values to those seen, among equals the best by the prior.
  std::vector<size_t> sample(size_t n) {
    std::vector<size_t> out;
    while (out.size() < n) {
      std::ptrdiff_t most = 0;
      size_t best = 0;
      std::optional<double> fastest;
      for (const size_t point : order_) {
        if (history_.taken(point)) continue;
        if (!fastest) fastest = seconds(point);
        if (seconds(point) > kHopelessRatio * *fastest) break;
        const std::ptrdiff_t fresh =
            std::ranges::count_if(values_of(point), [&](uint32_t value) { return !seen_[value]; });
        if (fresh > most) most = fresh, best = point;
      }
      if (most == 0) break;
      out.push_back(best);
      history_.take(best);
      see(best);
    }
    return out;
  }

  const SearchSpace& space_;
  History history_;
  LearntPrior prior_;
  std::vector<size_t> order_;          ///< points, the best first
  std::vector<uint32_t> first_value_;  ///< of each axis: the number of its first value among those of all axes
  std::vector<bool> seen_;             ///< values of the first sample
  bool sampled_ = false;
};

}  // namespace

std::unique_ptr<Strategy> by_learnt_prior(const SearchSpace& space, uint64_t) {
  return std::make_unique<LearntOrder>(space);
}

}  // namespace roofgen
