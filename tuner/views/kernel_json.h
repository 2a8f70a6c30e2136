// A kernel of a result as JSON: the same in what `tune` and `whatif` write.
#pragma once

#include <nlohmann/json.hpp>

#include "tuner/report.h"

namespace roofgen {

/// `timed`: where measured times, if there are any, come from.
nlohmann::ordered_json kernel_json(const KernelReport& kernel, Origin timed);

}  // namespace roofgen
