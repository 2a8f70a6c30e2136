// Fuse or not: the best fused variant against the best unfused one, and why.
#pragma once

#include <vector>

#include "tuner/report.h"

namespace roofgen {

/// A variant of one kernel is fused. `band` is the relative error of one time.
FusionVerdict fusion_verdict(const std::vector<VariantReport>& variants, double band);

}  // namespace roofgen
