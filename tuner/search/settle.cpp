#include <algorithm>

#include "tuner/search/timing.h"

namespace roofgen {
namespace {

/// The verified schedules of a stage, fastest first: by their measurements where they were timed, else by the best
/// model that timed them.
std::vector<Schedule> ranked(const StageTimes& stage) {
  std::vector<KernelReport> all;
  for (const TimedTask& t : stage.tasks)
    if (t.verified()) all.push_back(t.report());
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
    KernelReport k = best.report();
    if (k.measurement) {
      if (first.task().point == plan.stages[stages[i]].space.preset) k.preset = first.report().measurement;
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
    if (!times.complete) continue;
    add_winners(run, plan, times, v);
    for (const StageTimes& stage : times.stages) out.rankings[v.name].push_back(ranked(stage));
    if (!v.verified || !(v.seconds > 0) || (least > 0 && v.seconds >= least)) continue;
    least = v.seconds;
    out.best_variant = v.name;
  }
  // Where variants were timed side by side, their pairs decide, as in the verdict.
  if (!timings.pairs.empty()) out.best_variant = timings.pairs.front().variant;
  return out;
}

}  // namespace roofgen
