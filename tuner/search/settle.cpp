#include <algorithm>

#include "tuner/search/timing.h"
#include "tuner/search/trials.h"
#include "tuner/verify/l2_model.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// The verified schedules of a stage, fastest first: by their measurements where they were timed, else by the best
/// model that timed them.
std::vector<Schedule> ranked(const SearchRun& run, const SearchPlan& plan, const StageTimes& stage) {
  std::vector<KernelReport> all;
  for (const TimedTask& t : stage.tasks)
    if (t.verified()) all.push_back(kernel_report(run, plan, *t.task, t.evaluation, t.measurement, t.code));
  std::stable_sort(all.begin(), all.end(), [](const KernelReport& a, const KernelReport& b) {
    return a.time.model != b.time.model ? a.time.model > b.time.model : a.seconds < b.seconds;
  });
  std::vector<Schedule> out;
  for (KernelReport& k : all) out.push_back(std::move(k.schedule));
  return out;
}

/// Adds the winners' kernels and their sums to the report of a variant.
void add_winners(const SearchRun& run, const SearchPlan& plan, const VariantTimes& times, VariantReport& v) {
  const std::vector<size_t> stages = plan.stages_of(v.name);
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageTimes& stage = times.stages[i];
    const TimedTask &best = stage.best(), &first = stage.tasks.front();
    KernelReport k = kernel_report(run, plan, *best.task, best.evaluation, best.measurement, best.code);
    if (best.measurement) {
      if (first.task->point == plan.stages[stages[i]].space.preset) k.preset = first.measurement;
      k.finalists = stage.finalists;
    }
    v.dram_bytes += k.work.dram_bytes;
    v.l2_bytes += k.work.l2_bytes;
    v.flops += k.flops;
    v.kernels.push_back(std::move(k));
  }
  v.verification = times.verification;
  v.verified = v.verification.passed;
  v.measurement = times.measurement;
  if (v.measurement) {
    v.seconds = 1e-9 * ranking_timing(*v.measurement)->median_ns;
  } else if (v.verified || !run.context.gpu) {
    for (const KernelReport& k : v.kernels) v.seconds += k.seconds;
  }
}

}  // namespace

Settled settle(const SearchRun& run, const SearchPlan& plan, const Timings& timings) {
  Settled out;
  out.variants = plan.reports;
  double least = 0;
  for (size_t i = 0; i < out.variants.size(); ++i) {
    VariantReport& v = out.variants[i];
    const VariantTimes& times = timings.variants[i];
    for (const StageTimes& stage : times.stages)
      for (const TimedTask& t : stage.tasks)
        if (t.measurement)
          out.timed.push_back({t.task->candidate.schedule, *t.measurement, 0,
                               plan.stages[plan.stages_of(v.name)[static_cast<size_t>(&stage - times.stages.data())]]
                                   .space.predicted[t.task->point],
                               t.task->candidate.binary.registers,
                               t.task->candidate.binary.static_smem_bytes + t.task->launch.smem_bytes,
                               t.task->compile_s, t.task->check_s});
    if (!times.complete) continue;
    add_winners(run, plan, times, v);
    for (const StageTimes& stage : times.stages) out.rankings[v.name].push_back(ranked(run, plan, stage));
    if (!v.verified || !(v.seconds > 0) || (least > 0 && v.seconds >= least)) continue;
    least = v.seconds;
    out.best_variant = v.name;
  }
  // Where variants were timed side by side, their pairs decide, as in the verdict.
  if (!timings.pairs.empty()) out.best_variant = timings.pairs.front().variant;
  return out;
}

namespace {

/// Whether a variant's temporaries together fit the usable L2, and this stage touches one.
bool temporaries_in_l2(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& evaluation) {
  if (evaluation.temporary_bytes == 0) return false;
  double all = 0;
  for (const Buffer& b : plan.temporaries.at(task.candidate.variant)) all += static_cast<double>(b.bytes);
  return all <= kL2Usable * run.context.device.at("l2_bytes");
}

}  // namespace

KernelReport kernel_report(const SearchRun& run, const SearchPlan& plan, const Task& task, const Evaluation& e,
                           const std::optional<Measurement>& measured, const std::optional<CodeTime>& code) {
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
  const double operations = k.flops > 0 ? k.flops : k.work.fp32_ops;
  k.arithmetic_intensity = k.work.dram_bytes > 0 ? operations / k.work.dram_bytes : 0;
  k.counted = e.counts.ctas > 0;
  k.code = code;
  if (code) count_by_code(*code, run.context.device, k.work);
  if (k.counted)
    k.time = code ? estimate(run.context.device, k.work, task.occupancy, *code)
                  : estimate(run.context.device, k.work, task.occupancy);
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
