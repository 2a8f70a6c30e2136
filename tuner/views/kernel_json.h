// A kernel of a result as JSON, for `tune` and `whatif`.
#pragma once

#include <nlohmann/json.hpp>

#include "tuner/report.h"

namespace roofgen {

/// `timed`: the origin of the measured times, if there are any.
nlohmann::ordered_json kernel_json(const KernelReport& kernel, Origin timed);

}  // namespace roofgen
