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

struct Recording;

/// Exit::kUsage for a recording without a timed point, or whose points do not differ.
Result<RecordedSpace> recorded_space(const Recording& recording);
/// Reads a file in a format of tuner/recording; of wisdom the recording with the most points.
Result<RecordedSpace> read_recorded(std::string bytes, const std::string& file);

}  // namespace roofgen
