#include "tuner/search/trials.h"
#include "tuner/verify/l2_model.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// Whether a variant's temporaries together fit the usable L2, and this stage touches one.
bool temporaries_in_l2(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& evaluation) {
  if (evaluation.temporary_bytes == 0) return false;
  double all = 0;
  for (const Buffer& b : plan.temporaries.at(task.candidate.variant)) all += static_cast<double>(b.bytes);
  return all <= kL2Usable * run.context.device.at("l2_bytes");
}

}  // namespace

const Timing* ranking_timing(const Measurement& m) { return m.cold ? &*m.cold : m.hot ? &*m.hot : nullptr; }

KernelReport kernel_report(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& e,
                           const std::optional<Measurement>& measured) {
  const Binary& b = task.candidate.binary;
  KernelReport k;
  k.schedule = task.candidate.schedule;
  k.stage = task.candidate.stage().name;
  k.digest = b.digest;
  k.registers = b.registers;
  k.spill_bytes = b.spill_bytes;
  k.smem_bytes = b.static_smem_bytes + task.launch.smem_bytes;
  k.threads = static_cast<int>(task.launch.block.count());
  k.advisories = b.advisories;
  k.occupancy = task.occupancy;
  k.intermediate_in_l2 = temporaries_in_l2(run, plan, task, e);
  k.work = work_from_counts(e, task.launch, k.intermediate_in_l2);
  k.work.matrix = matrix_instruction(b.ptx);
  k.work.math = matrix_math(run.problem.dtype);
  k.work_exact = e.exact;
  k.counts = e.counts;
  k.exps = static_cast<double>(e.counts.exps) * e.scale;
  k.compulsory_bytes = e.temporary_bytes + e.tensor_bytes;
  k.flops = k.work.mma_flops;
  k.arithmetic_intensity = k.work.dram_bytes > 0 ? k.flops / k.work.dram_bytes : 0;
  k.counted = e.counts.ctas > 0;
  if (k.counted) k.time = estimate(run.context.device, k.work, task.occupancy);
  k.measurement = measured;
  k.seconds = measured ? 1e-9 * ranking_timing(*measured)->median_ns : k.time.seconds;
  if (k.counted) {
    k.waste = k.time.work_seconds / plan.score.floor.seconds;
    k.idle = k.time.kernel_seconds / k.time.work_seconds;
    k.stall = k.seconds / k.time.kernel_seconds;
  }
  k.verification = e.verification;
  return k;
}

}  // namespace roofgen
