// The work of a whole launch: from counts (exact), or from the formulas of the search space (the prior).
#pragma once

#include "generator/generate.h"
#include "roofline/work.h"
#include "tuner/code_time.h"
#include "tuner/model.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// The dims, flags and dtype of a problem for a work formula.
WorkRequest work_request(const Problem& problem);
/// The work that the op states itself, or else that of `formula`, which has the problem's dims and flags.
Result<RequiredWork> required_work(const Op& op, const WorkFormula* formula, const Problem& problem);

/// `temporaries_in_l2`: the temporaries of the stage stay in L2 between kernels.
Work work_from_counts(const Evaluation& evaluation, const Launch& launch, bool temporaries_in_l2);

/// The family of matrix instructions whose FLOPs the work formulas of a stage state; mma.sync if there are none.
MatrixInstruction matrix_instruction(const Stage& stage);

/// The device for the prior, without bandwidth limits of the whole chip. DRAM bytes hardly differ between the points of
/// one stage, and the SMs' ports rank L2 traffic. The choice of points to execute is then independent of bandwidths,
/// and a new bandwidth requires no new execution.
Device ranking_device(Device device);

/// The prior of a point: formulas of `stage.work` and its predicted time on the ranking device.
struct Prior {
  Work work;
  double seconds = 0;
};
Result<Prior> prior(const Device& device, const Stage& stage, const expr::Names& names, DType dtype);

/// CTAs of the variant's longest kernel, by the prior, at the default schedules, be they legal or not; 0: unknown.
double default_ctas(const Device& device, const Variant& variant, const expr::Map& problem_scope, DType dtype);

}  // namespace roofgen
