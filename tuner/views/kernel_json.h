// The parts that the JSON of `tune` and `whatif` share.
#pragma once

#include <nlohmann/json.hpp>

#include "tuner/report.h"

namespace roofgen {

/// `timed`: the origin of measured times.
nlohmann::ordered_json kernel_json(const KernelReport& kernel, Origin timed);
nlohmann::ordered_json causes_json(const std::vector<Cause>& causes);

}  // namespace roofgen
