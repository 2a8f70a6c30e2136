#include "profile/fit.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/pool.h"

namespace roofgen::profile {
namespace {

/// Sums over samples, in their order.
struct Sums {
  double weight = 0, linear = 0, square = 0;
  void add(double w, double ratio) {
    weight += w;
    linear += w * ratio;
    square += w * ratio * ratio;
  }
  /// Grows with each sample.
  double objective(bool scale) const { return scale && weight > 0 ? square - linear * linear / weight : square; }
};

}  // namespace

Fit::Fit(FitProblem problem, LogRatio ratio, std::function<void(double)> tried)
    : problem_(std::move(problem)), ratio_(std::move(ratio)), tried_(std::move(tried)), best_(problem_.start) {
  for (size_t i = 0; i < problem_.weights.size(); ++i)
    if (problem_.weights[i] > 0) samples_.push_back(i);
}

Result<std::optional<double>> Fit::objective(const Point& point, double limit) {
  Sums sums;
  const auto step = static_cast<size_t>(problem_.jobs);
  for (size_t from = 0; from < samples_.size(); from += step) {
    const size_t count = std::min(step, samples_.size() - from);
    std::vector<double> ratios(count);
    const auto evaluate = [&](size_t i) -> Result<void> {
      ROOFGEN_TRY(ratios[i], ratio_(samples_[from + i], point));
      return {};
    };
    ROOFGEN_CHECK(count == 1 ? evaluate(0) : for_each_index(problem_.jobs, count, evaluate));
    for (size_t i = 0; i < count; ++i) sums.add(problem_.weights[samples_[from + i]], ratios[i]);
    if (sums.objective(problem_.scale) > limit) return std::optional<double>();
  }
  return std::optional(sums.objective(problem_.scale));
}

Result<double> Fit::log_scale(const Point& point) {
  if (!problem_.scale) return 0.0;
  Sums sums;
  for (const size_t i : samples_) {
    ROOFGEN_TRY(const double ratio, ratio_(i, point));
    sums.add(problem_.weights[i], ratio);
  }
  return -sums.linear / sums.weight;
}

Result<Fit::Move> Fit::try_move(Point to) {
  ROOFGEN_TRY(const std::optional<double> value, objective(to, value_ + kLeastGain));
  Move out = value && *value >= value_ - kLeastGain ? Move::kSame : Move::kWorse;
  if (value && *value < value_ - kLeastGain) {
    best_ = std::move(to);
    value_ = *value;
    out = Move::kBetter;
  }
  if (tried_) tried_(value_);
  return out;
}

Result<Point> Fit::run() {
  const size_t scalars = problem_.values.size();
  best_ = problem_.start;
  ROOFGEN_TRY(const std::optional<double> first, objective(best_, std::numeric_limits<double>::infinity()));
  value_ = *first;
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<bool> matters(scalars);
    for (size_t k = 0; k < scalars; ++k) {
      const size_t was = best_[k];
      for (size_t v = 0; v < problem_.values[k]; ++v) {
        if (v == was) continue;
        Point to = best_;
        to[k] = v;
        ROOFGEN_TRY(const Move move, try_move(std::move(to)));
        moved |= move == Move::kBetter;
        matters[k] = matters[k] || move != Move::kSame;
      }
    }
    for (size_t a = 0; a < scalars && !moved; ++a)
      for (size_t b = a + 1; b < scalars && !moved; ++b)
        for (const auto& [of_a, of_b] : {std::pair{-1, -1}, {-1, 1}, {1, -1}, {1, 1}}) {
          Point to = best_;
          to[a] += static_cast<size_t>(of_a), to[b] += static_cast<size_t>(of_b);
          // Below the first value, the index wraps around.
          if (moved || !matters[a] || !matters[b] || to[a] >= problem_.values[a] || to[b] >= problem_.values[b])
            continue;
          ROOFGEN_TRY(const Move move, try_move(std::move(to)));
          moved = move == Move::kBetter;
        }
  }
  return best_;
}

}  // namespace roofgen::profile
