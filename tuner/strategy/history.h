// The points that were asked for, and the results told: shared state of all strategies.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "tuner/strategy/random.h"
#include "tuner/strategy/strategy.h"

namespace roofgen {

class History {
 public:
  explicit History(size_t points) : taken_(points) {}

  bool taken(size_t point) const { return taken_[point]; }
  size_t left() const { return taken_.size() - number_taken_; }
  void take(size_t point) {
    number_taken_ += !taken_[point];
    taken_[point] = true;
  }
  /// An untaken point, each as likely as any other; left() must not be 0.
  size_t draw(Random& random) const {
    for (int tries = 0; tries < 64; ++tries)
      if (const size_t point = random.below(taken_.size()); !taken_[point]) return point;
    size_t rank = random.below(left());
    for (size_t point = 0;; ++point)
      if (!taken_[point] && rank-- == 0) return point;
  }

  /// Of a round that is chosen by the results: no result of the round teaches its other points, so rounds are short.
  size_t longest_round() const { return points_.size() < kFirst ? kFirst - points_.size() : kRound; }
  static constexpr size_t kFirst = 6;  ///< points before results have a say

  /// A failed point has the time of the slowest one told so far.
  void tell(size_t point, const TrialResult& result) {
    take(point);
    points_.push_back(point);
    const bool timed = !result.failed && result.seconds > 0;
    logs_.push_back(timed ? std::log(result.seconds) : HUGE_VAL);
    if (!timed) return;
    slowest_ = std::max(slowest_, logs_.back());
    if (!best_ || logs_.back() < logs_[*best_]) best_ = points_.size() - 1;
  }
  const std::vector<size_t>& points() const { return points_; }  ///< in the order told
  /// Logarithms of their times; failed ones infinite.
  const std::vector<double>& logs() const { return logs_; }
  double slowest() const { return slowest_; }
  std::optional<size_t> best() const { return best_; }  ///< its place in points()

 private:
  static constexpr size_t kRound = 4;

  std::vector<bool> taken_;
  size_t number_taken_ = 0;
  std::vector<size_t> points_;
  std::vector<double> logs_;
  double slowest_ = -HUGE_VAL;
  std::optional<size_t> best_;
};

}  // namespace roofgen
