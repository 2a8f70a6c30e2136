// From times to the report's variants: arithmetic on counts, times and device data, nothing runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/search/timing.h"

namespace roofgen {

struct Settled {
  std::vector<VariantReport> variants;  ///< with the winners' kernels
  std::string best_variant;             ///< the fastest verified one; empty: none
  std::vector<TimedPoint> timed;        ///< every timed candidate, in the order of the spaces
  /// By complete variant: the verified schedules of each stage, fastest first.
  std::map<std::string, std::vector<std::vector<Schedule>>> rankings;
};

Settled settle(const SearchRun& run, const SearchPlan& plan, const Timings& timings);

}  // namespace roofgen
