#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/costs.h"
#include "tuner/search/timing.h"
#include "tuner/verdict.h"

namespace roofgen {
namespace {

/// By stage and schedule, whichever thread came first. Each schedule is formatted once.
std::vector<Rejected> sorted(std::vector<Rejected> rejections) {
  std::vector<std::pair<std::string, Rejected>> named;
  named.reserve(rejections.size());
  for (Rejected& r : rejections) {
    std::string name = to_string(r.schedule);
    named.emplace_back(std::move(name), std::move(r));
  }
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.stage, a.first) < std::tie(b.second.stage, b.first);
  });
  rejections.clear();
  for (auto& [name, r] : named) rejections.push_back(std::move(r));
  return rejections;
}

std::string executor_device(const SearchRun& run, const Timings& timings) {
  const std::string& roofs = run.context.device.name;
  if (!run.context.gpu) return fmt::format("{}, simulated (no GPU is used)", roofs);
  const char* how = timings.timed == 0                    ? "nothing timed"
                    : timings.origin == Origin::kMeasured ? "measured"
                                                          : "simulated by a driver without a GPU";
  return fmt::format("{}, {}; roofs of {}", run.gpu.name, how, roofs);
}

GpuRun gpu_run(const SearchRun& run, const SearchPlan& plan, const Timings& timings, const VariantReport* best) {
  GpuRun out;
  out.origin = run.context.gpu->origin();
  out.identity = run.gpu;
  out.protocol = run.options.protocol;
  out.check = run.options.check;
  out.started = run.started_utc;
  out.timed = timings.timed;
  out.buffer_sets = timings.buffer_sets;
  if (out.origin != Origin::kMeasured)
    out.notes.push_back(
        "the driver is simulated (docs/use/shim.md): the times are not measurements and do not predict a GPU");
  out.notes.insert(out.notes.end(), timings.notes.begin(), timings.notes.end());
  out.lost_because = timings.lost_because;
  if (!best || !best->measurement) return out;
  out.sm_mhz = best->measurement->sm_mhz;
  if (out.sm_mhz <= 0) return out;
  // The datasheet's ceilings, with those of the SMs at the clock of the samples: what the power limit left of them.
  out.floor_at_clock =
      problem_floor(at_clock(run.context.device, out.sm_mhz), plan.required, run.problem.dtype, RoofSet::kSustained);
  out.score_at_clock = out.floor_at_clock.seconds / best->seconds;
  return out;
}

/// Every measured point.
std::vector<TimedPoint> measured(const SearchPlan& plan, const Timings& timings) {
  std::vector<TimedPoint> out;
  for (const VariantTimes& v : timings.variants) {
    const std::vector<size_t> stages = plan.stages_of(v.variant);
    for (size_t s = 0; s < v.stages.size(); ++s)
      for (const TimedTask& t : v.stages[s].tasks)
        if (const KernelReport& k = t.report(); k.measurement)
          out.push_back({k.schedule, *k.measurement, 0, plan.stages[stages[s]].space.predicted[t.task().point],
                         k.registers, k.smem_bytes, t.task().compile_s, t.task().check_s});
  }
  return out;
}

/// Every tried point with the time that its strategy was told.
std::vector<TimedPoint> modelled(const SearchPlan& plan, const Trials& trials) {
  std::vector<TimedPoint> out;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const Task& t : trials.stages[s]) {
      TimedPoint& point = out.emplace_back();
      point.schedule = t.candidate.schedule;
      point.predicted = plan.stages[s].space.predicted[t.point];
      point.registers = t.candidate.binary.registers;
      point.smem_bytes = t.candidate.binary.static_smem_bytes + t.launch.smem_bytes;
      if (const auto timed = trials.timed.find(&t); timed != trials.timed.end())
        point.seconds = timed->second.report().seconds;
    }
  return out;
}

// ---- Settling: from times to the variants of the report --------------------------------------------

struct Settled {
  std::vector<VariantReport> variants;  ///< with the winners' kernels
  std::string best_variant;             ///< the fastest verified one; empty: none
  /// By complete variant: the verified schedules of each stage, fastest first.
  std::map<std::string, std::vector<std::vector<Schedule>>> rankings;
};

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

// ---- The report ------------------------------------------------------------------------------------

TuneReport make_report(const SearchRun& run, const SearchPlan& plan, const Trials& trials, const Timings& timings,
                       Settled settled, FusionVerdict verdict) {
  TuneReport r;
  r.problem = run.problem;
  r.words = plan.words;
  r.device = run.context.device;
  r.executor_device = executor_device(run, timings);
  r.compiler = run.context.compiler.description();
  r.strategy = run.options.strategy;
  r.seed = run.options.seed;
  r.warm_starts = trials.warm_starts;
  r.ended = trials.ended;
  r.considered = plan.considered;
  r.score = plan.score;

  Tally tally;
  tally.rejections = plan.rejections;
  tally += trials.tally;
  tally += timings.tally;
  for (const Rejected& x : tally.rejections) r.rejected[x.stage] += x.points;
  r.rejections = sorted(std::move(tally.rejections));
  r.compiled = tally.compiled;
  r.compiled_now = tally.compiled_now;
  r.evaluated_now = tally.evaluated_now;
  r.simulated_binaries = tally.simulated.size();
  r.sliced_binaries = tally.sliced.size();
  r.simulated_now = tally.simulated_now.size();
  for (const auto& tasks : trials.stages)
    for (const Task& t : tasks)
      if (t.compiled) r.arch = t.candidate.binary.arch;

  r.variants = std::move(settled.variants);
  r.untried = plan.untried;
  r.timed = run.context.gpu ? measured(plan, timings) : modelled(plan, trials);
  r.best_variant = std::move(settled.best_variant);
  r.verdict = std::move(verdict);
  const VariantReport* best = r.find(r.best_variant);
  if (best) {
    r.score.value = r.score.floor.seconds / best->seconds;
    r.score.datasheet = r.score.floor_datasheet.seconds / best->seconds;
  }
  if (run.context.gpu) r.gpu = gpu_run(run, plan, timings, best);
  for (const VariantReport& v : r.variants)
    for (const KernelReport& k : v.kernels)
      if (k.time.model == TimeModel::kClosedForm) r.closed_form_because = timings.closed_form_because;
  r.warnings = own_warnings(plan.formula ? &*plan.formula : nullptr, r);
  r.interrupted = timings.interrupted || run.interrupted();
  return r;
}

}  // namespace

Result<TuneResult> tune(const TuneContext& context, const Problem& problem, const TuneOptions& options) {
  spend(Cost::kTunes, 1);
  const SearchRun run{context, problem, options};
  ROOFGEN_TRY(const SearchPlan plan, plan_search(run));
  Runner runner(run, plan);
  ROOFGEN_TRY(const Trials trials, run_trials(run, plan, runner));
  ROOFGEN_TRY(const Timings timings, context.gpu ? time_on_gpu(run, plan, trials, runner)
                                                 : Result<Timings>(time_by_model(run, plan, trials, runner)));
  note_times(run, plan, timings);
  Settled settled = settle(run, plan, timings);
  FusionVerdict verdict = fusion_verdict(context.device, settled.variants, plan.untried,
                                         context.gpu ? &timings.pairs : nullptr, timings.origin);
  TuneResult out;
  for (const VariantTimes& v : timings.variants) {
    if (!v.complete) continue;
    for (const Task* t : v.winners())
      out.winners[v.variant].push_back({t->program, t->candidate.binary, t->launch,
                                        t->evaluation ? t->evaluation->lines : std::vector<LineRuns>{},
                                        plan.temporaries.at(t->candidate.variant)});
  }
  out.rankings = settled.rankings;
  out.report = make_report(run, plan, trials, timings, std::move(settled), std::move(verdict));
  return out;
}

}  // namespace roofgen
