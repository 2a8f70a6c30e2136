// Warm starts: schedules that were fast for near problems and on near devices, by the trials in the store. They are
// candidates like others: nothing of their old results is used but the order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/search/plan.h"

namespace roofgen {

/// A point of a stage and the problem and device for which it was fast.
struct WarmPoint {
  size_t point = 0;
  std::string problem, device;
};

/// The schedules of TuneOptions::first that are points of the stage.
std::vector<size_t> first_points(const SearchRun& run, const StagePlan& stage);

/// Points of the stage, the nearest problem's first and each problem's fastest first: at most an eighth of the stage's
/// share. None with --cold, without a store, and where the strategy tries every point.
std::vector<WarmPoint> warm_start(const SearchRun& run, const StagePlan& stage);

/// The sum of |log2| of the ratios of the sizes of `problem` and those of a stored problem's text, to_string(Problem).
/// None where anything else differs: op, dtype, flags, expressions. Real numbers (the scale) may differ.
std::optional<double> problem_distance(const Problem& problem, const std::string& stored);

}  // namespace roofgen
