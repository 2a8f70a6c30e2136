// Fuse or not: the best fused variant against the best unfused one, and why.
#pragma once

#include <vector>

#include "tuner/report.h"

namespace roofgen {

/// A variant of one kernel is fused. Times of the model differ when they differ by more than two errors of
/// `band`; measured ones (`pairs`: of each variant with the fastest) when their paired ratio's interval does
/// not hold 1. Measured variants that were not paired are undecided.
FusionVerdict fusion_verdict(const std::vector<VariantReport>& variants, double band,
                             const std::vector<VariantPair>* pairs = nullptr, Origin timed = Origin::kMeasured);

}  // namespace roofgen
