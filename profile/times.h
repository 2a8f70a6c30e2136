// Measured times of kernels as JSON, schema roofgen.times.1 (docs/use/calibrate.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/check.h"
#include "roofgen/result.h"

namespace roofgen::profile {

/// One launch and the time that it took.
struct TimedKernel {
  std::string family;  ///< kernels that are alike, and count together as much as each other family
  double time_s = 0;
  double sm_mhz = 0;  ///< SM clock during the measurement; 0: as the model chooses
  check::Request kernel;
  Where where;  ///< in the file of times
};

struct Times {
  std::string measured;  ///< how and on which GPU
  std::vector<TimedKernel> kernels;
};

inline constexpr size_t kMaxTimedKernels = 1000;

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// Names of files are relative to the folder of `file`; `read` reads them. Errors have Exit::kUsage and the place in
/// `file`.
Result<Times> parse_times(std::string text, const std::string& file, const ReadFile& read);

}  // namespace roofgen::profile
