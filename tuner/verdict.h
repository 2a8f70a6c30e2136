// Whether to fuse: the best fused variant against the best variant of separate kernels, and the causes.
#pragma once

#include <vector>

#include "roofline/lint/lint.h"
#include "roofline/work.h"
#include "tuner/report.h"

namespace roofgen {

/// Compares the fastest fused variant (one kernel) with the fastest of several kernels. Times of the model differ if
/// their ratio exceeds two independent errors of `band`; measured times differ if the 95 % interval of their paired
/// ratio excludes 1. `pairs`: each measured variant with the fastest. Without a pair the verdict is undecided.
FusionVerdict fusion_verdict(const Device& device, const std::vector<VariantReport>& variants, double band,
                             const std::vector<VariantPair>* pairs = nullptr, Origin timed = Origin::kMeasured);

// ---- The lint rules (docs/lint.md) applied to a tuning result --------------------------------------

/// What the rules find in the verified variants of a report; the text begins with the variant's name.
std::vector<Warning> own_warnings(const WorkFormula* formula, const TuneReport& report);

}  // namespace roofgen
