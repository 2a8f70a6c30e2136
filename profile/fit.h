// Fits a few scalars, each with a few physical values, to measured times (docs/use/calibrate.md).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::profile {

/// For each scalar the index of its value.
using Point = std::vector<size_t>;

/// log(modelled / measured) of one sample at a point. Called from several threads, but never at a time for one sample.
using LogRatio = std::function<Result<double>(size_t sample, const Point& point)>;

/// What a fit is about. The weights of samples add up to 1; those of weight 0 take no part.
struct FitProblem {
  std::vector<size_t> values;  ///< of each scalar: their number
  Point start;
  std::vector<double> weights;
  bool scale = false;  ///< one factor for all samples is free
  int jobs = 1;
};

/// A move has to lower the objective by more than this.
inline constexpr double kLeastGain = 1e-9;

class Fit {
 public:
  /// `tried` is called after each point with the best objective so far.
  Fit(FitProblem problem, LogRatio ratio, std::function<void(double best)> tried = {});

  /// The mean of the squared ratios, after the common factor if that is free. nullopt: above `limit`, where the rest is
  /// not evaluated.
  Result<std::optional<double>> objective(const Point& point, double limit);
  /// The logarithm of the common factor measured / modelled; 0 unless it is free.
  Result<double> log_scale(const Point& point);
  /// From the start, moves one scalar at a time to the best of its values, and two at a time to neighbouring values
  /// where no single move helps, of scalars that matter on their own.
  Result<Point> run();

 private:
  enum class Move { kBetter, kSame, kWorse };
  Result<Move> try_move(Point to);

  FitProblem problem_;
  LogRatio ratio_;
  std::function<void(double)> tried_;
  std::vector<size_t> samples_;  ///< of a weight above 0
  Point best_;
  double value_ = 0;  ///< of `best_`
};

}  // namespace roofgen::profile
