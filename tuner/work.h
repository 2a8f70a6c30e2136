// Work of a whole launch: from counts (exact) or from the space's closed formulas (the prior).
#pragma once

#include "generator/generate.h"
#include "roofline/work.h"
#include "tuner/roofline.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// The problem as a formula takes it: its dims, flags and dtype.
WorkRequest work_request(const Problem& problem);
/// What the op says itself, else by the formulas of `formula`, whose names are those of the problem's dims and flags.
Result<RequiredWork> required_work(const Op& op, const WorkFormula* formula, const Problem& problem);

/// `temporaries_in_l2`: what the stage writes to or reads from temporaries stays in L2 between kernels.
Work work_from_counts(const Evaluation& evaluation, const Launch& launch, bool temporaries_in_l2);

/// The device as the prior sees it: without chip-wide bandwidth limits. DRAM bytes hardly differ
/// between the points of one stage, and L2 traffic is ranked by the SMs' own ports. So the choice of
/// what to execute does not depend on a bandwidth, and a new bandwidth needs no new execution.
Device ranking_device(Device device);

/// The prior of a point: formulas of `stage.work` and its predicted time on the ranking device.
struct Prior {
  Work work;
  double seconds = 0;
};
Result<Prior> prior(const Device& device, const Stage& stage, const Legal& legal, DType dtype);

}  // namespace roofgen
