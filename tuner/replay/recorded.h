// Recorded tuning spaces: every point with its measured time, as other tuners write them.
#pragma once

#include <string>
#include <vector>

#include "roofgen/result.h"
#include "tuner/strategy/strategy.h"

namespace roofgen {

/// A space whose points were all tried.
struct RecordedSpace {
  std::string format;          ///< "Kernel Tuner cachefile", "T4", "KTT"
  std::string device, kernel;  ///< empty where the format has none
  SearchSpace space;           ///< axes of more than one value; with the times "predicted" of a T4 file
  std::vector<TrialResult> results;
  size_t failed = 0;
  double best = 0;  ///< seconds of the fastest point
};

/// Reads a Kernel Tuner cachefile (also one whose end is missing, as a killed run leaves it), a T4 1.0.0 result file or
/// the JSON output of KTT, each plain or packed by gzip. Times: milliseconds, as T4's metadata say, microseconds. A
/// point that occurs twice counts once, with its last result. Exit::kUsage, with line and column, for any other text
/// and for files without a timed point.
Result<RecordedSpace> read_recorded(std::string bytes, const std::string& file);

}  // namespace roofgen
