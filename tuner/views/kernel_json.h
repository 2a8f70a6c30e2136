// The parts that the JSON of `tune` and `whatif` share.
#pragma once

#include "base/json.h"
#include "tuner/report.h"

namespace roofgen {

/// `timed`: the origin of measured times.
Json kernel_json(const KernelReport& kernel, Origin timed);
Json causes_json(const std::vector<Cause>& causes);

}  // namespace roofgen
