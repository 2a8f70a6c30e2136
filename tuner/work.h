// Work of a whole launch: from counts (exact) or from the space's closed formulas (the prior).
#pragma once

#include "generator/generate.h"
#include "tuner/roofline.h"
#include "tuner/verify.h"

namespace roofgen {

/// `l2_resident_bytes`: bytes of temporaries this stage touches that stay in L2 between kernels.
Work work_from_counts(const Evaluation& evaluation, const Launch& launch, double l2_resident_bytes);

/// The prior of a point: formulas of `stage.work` and its predicted time.
struct Prior {
  Work work;
  double seconds = 0;
};
Result<Prior> prior(const Device& device, const Stage& stage, const Legal& legal, DType dtype);

}  // namespace roofgen
