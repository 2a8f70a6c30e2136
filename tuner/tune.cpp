#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include "tuner/own_lint.h"
#include "tuner/search/plan.h"
#include "tuner/search/stopwatch.h"
#include "tuner/search/task.h"
#include "tuner/search/trial.h"
#include "tuner/verdict.h"

namespace roofgen {
namespace {

using Clock = std::chrono::steady_clock;

/// Of `--time`, what trials may take on a GPU; the rest is for timing.
constexpr double kTrialShare = 0.5;

class Tuner {
 public:
  Tuner(const TuneContext& context, const Problem& problem, const TuneOptions& options)
      : context_(context), problem_(problem), options_(options), started_(Clock::now()) {}

  Result<TuneResult> run() {
    TuneReport& report = result_.report;
    report.problem = problem_;
    report.device = context_.device;
    report.simulated = !context_.gpu;
    report.compiler = context_.compiler.description();
    report.strategy = options_.strategy;
    report.seed = options_.seed;
    describe_gpu();
    ROOFGEN_TRY(plan_, plan_search(context_, problem_, options_));
    report.considered = plan_.considered;
    report.variants = std::move(plan_.reports);
    for (Rejected& r : plan_.rejections) {
      ++report.rejected[r.stage];
      report.rejections.push_back(std::move(r));
    }
    report.floor_sustained = problem_floor(context_.device, plan_.required, problem_.dtype, RoofSet::kSustained);
    report.floor_datasheet = problem_floor(context_.device, plan_.required, problem_.dtype, RoofSet::kDatasheet);
    trials_.emplace(context_, problem_, options_, plan_, report, [this] { return stopped(); });
    ROOFGEN_CHECK(trials_->run());
    if (report.gpu) {
      ROOFGEN_CHECK(settle_by_time());
    } else {
      settle_by_model();
    }
    finish();
    if (report.gpu && report.gpu->timed == 0)
      report.executor_device =
          fmt::format("{}, nothing timed; roofs of {}", report.gpu->identity.name, context_.device.name);
    if (report.compiled == 0 && trials_->first_compile_error() && !stopped()) return *trials_->first_compile_error();
    report.interrupted |= options_.stop && options_.stop->load();
    report.elapsed_s = seconds_since_start();
    return std::move(result_);
  }

 private:
  double seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  bool stopped() const {
    const double limit = options_.time_limit_s * (context_.gpu ? kTrialShare : 1);
    return (options_.stop && options_.stop->load()) || (limit > 0 && seconds_since_start() > limit);
  }

  void describe_gpu() {
    TuneReport& report = result_.report;
    if (!context_.gpu) {
      report.executor_device = fmt::format("{}, simulated (no GPU is used)", context_.device.name);
      return;
    }
    report.gpu.emplace();
    report.gpu->identity = context_.gpu->identity();
    report.gpu->protocol = options_.protocol;
    report.gpu->check = options_.check;
    report.gpu->started = utc_now();
    report.gpu->origin = context_.gpu->origin();
    if (report.gpu->origin == Origin::kMeasured) {
      report.executor_device =
          fmt::format("{}, measured; roofs of {}", report.gpu->identity.name, context_.device.name);
      return;
    }
    report.simulated = true;
    report.executor_device = fmt::format("{}, simulated by a driver without a GPU; roofs of {}",
                                         report.gpu->identity.name, context_.device.name);
    report.gpu->notes.push_back(
        "the driver is simulated (docs/shim.md): no time here was measured, and none says how fast a GPU is");
  }

  ReportContext to_report() const {
    return {context_.device, problem_.dtype, plan_.scope, result_.report.floor_sustained.seconds};
  }

  std::vector<StagePlan*> stages_of(const VariantReport& v) {
    std::vector<StagePlan*> out;
    for (StagePlan& plan : plan_.stages)
      if (plan.variant->name == v.name) out.push_back(&plan);
    return out;
  }

  /// Without a GPU: the fastest by the model.
  void settle_by_model() {
    for (VariantReport& v : result_.report.variants) {
      if (!v.available) continue;
      std::vector<const Task*> winners;
      for (StagePlan* plan : stages_of(v))
        if (const Task* best = winner(to_report(), *plan)) winners.push_back(best);
      if (winners.size() != stages_of(v).size()) continue;  // `verified` stays false
      keep_winners(v, winners);
      for (const KernelReport& k : v.kernels) v.seconds += k.seconds;
    }
  }

  /// With one: the fastest by the clock, stage by stage, each behind the winners before it; then whole
  /// variants against each other. A lost GPU leaves what is finished.
  Result<void> settle_by_time() {
    TuneReport& report = result_.report;
    trials_->free_gpu();
    std::function<double()> seconds_left;
    if (options_.time_limit_s > 0) seconds_left = [this] { return options_.time_limit_s - seconds_since_start(); };
    Stopwatch stopwatch(
        context_, problem_, options_, plan_, report, [this](Rejected r) { trials_->reject(std::move(r)); },
        std::move(seconds_left));
    std::vector<TunedVariant> chains;
    for (VariantReport& v : report.variants) {
      if (!v.available) continue;
      const std::vector<StagePlan*> stages = stages_of(v);
      std::vector<const Task*> winners;
      for (StagePlan* stage : stages) {
        if (stopwatch.lost() || trials_->gpu_lost()) break;
        if (auto ranked = stopwatch.rank(*stage, winners); !ranked) {
          cannot_time(v.name, ranked.error());
          break;
        }
        ROOFGEN_TRY(const Task* best, confirm(*stage, stage != stages.back()));
        if (!best) break;
        winners.push_back(best);
      }
      for (const StagePlan* stage : stages) record(*stage);
      if (winners.empty() || winners.size() != stages.size()) continue;
      keep_winners(v, winners);
      if (v.verified) chains.push_back({v.name, winners});
    }
    if (trials_->gpu_lost() && report.gpu->lost_because.empty()) report.gpu->lost_because = trials_->gpu_lost_because();
    return race(stopwatch, chains);
  }

  /// The fastest of a stage that the simulator finds no fault with either, unless the GPU alone was asked
  /// for. nullptr: none.
  Result<const Task*> confirm(StagePlan& stage, bool feeds) {
    for (Task* t : stage.ranking) {
      // Who is in a hurry gets what the GPU verified, uncounted.
      const bool hurried = (options_.stop && options_.stop->load()) ||
                           (options_.time_limit_s > 0 && seconds_since_start() > options_.time_limit_s);
      if (options_.check == Check::kFinalists && !hurried) {
        auto passed = trials_->simulate(*t);
        if (!passed) {
          trials_->reject({t->candidate.schedule, "run", to_string(passed.error())});
          continue;
        }
        if (!*passed) continue;
        if (feeds) ROOFGEN_CHECK(trials_->feed_simulator(*t));
      }
      // The pairs were with the fastest; where the simulator disproved that one they say nothing of this winner.
      if (t != stage.ranking.front()) stage.finalists.clear();
      return t;
    }
    return nullptr;
  }

  /// Variants whose chains were timed side by side take that time; where the race was cut short, the sum of
  /// their kernels'.
  Result<void> race(Stopwatch& stopwatch, const std::vector<TunedVariant>& chains) {
    TuneReport& report = result_.report;
    std::optional<ChainStandings> standings;
    const bool alone = chains.size() == 1 && chains[0].kernels.size() == 1;
    if (!chains.empty() && !alone && !stopwatch.lost() && !trials_->gpu_lost() && !report.interrupted) {
      auto raced = stopwatch.race(chains);
      if (raced)
        standings = std::move(*raced);
      else
        cannot_time("the variants side by side", raced.error());
    }
    for (size_t i = 0; i < chains.size(); ++i) {
      VariantReport& v = *std::find_if(report.variants.begin(), report.variants.end(),
                                       [&](const VariantReport& r) { return r.name == chains[i].variant; });
      if (standings)
        v.measurement = standings->measurements[i];
      else if (v.kernels.size() == 1)
        v.measurement = v.kernels[0].measurement;
      if (v.measurement) {
        v.seconds = 1e-9 * ranking_timing(*v.measurement)->median_ns;
      } else {
        for (const KernelReport& k : v.kernels) v.seconds += k.seconds;
      }
    }
    if (standings)
      for (const Pairing& p : standings->pairs)
        pairs_.push_back({chains[p.contender].variant, {p.ratio, p.low, p.high}});
    return {};
  }

  /// Too little memory for the buffers of one measurement costs that measurement; a lost GPU all that follow.
  void cannot_time(const std::string& what, const Error& error) {
    if (context_.gpu->fault() == Fault::kLost) return trials_->lose_gpu(error);
    trials_->reject(
        {Schedule{what, "", {}}, context_.gpu->fault() == Fault::kMemory ? "gpu memory" : "gpu", to_string(error)});
    if (options_.warn) options_.warn(fmt::format("{}: {}", what, error.message));
  }

  void record(const StagePlan& stage) {
    for (const Task& t : stage.tasks)
      if (t.measurement)
        result_.report.timed.push_back({t.candidate.schedule, *t.measurement, t.candidate.binary.registers,
                                        t.candidate.binary.static_smem_bytes + t.launch.smem_bytes, t.compile_s,
                                        t.check_s});
  }

  void keep_winners(VariantReport& v, const std::vector<const Task*>& winners) {
    const std::vector<StagePlan*> stages = stages_of(v);
    for (const StagePlan* stage : stages) result_.rankings[v.name].push_back(ranked(to_report(), *stage));
    for (size_t i = 0; i < winners.size(); ++i) {
      const Task& t = *winners[i];
      KernelReport k = kernel_report(to_report(), t);
      if (t.measurement) {
        k.preset = stages[i]->tasks.front().measurement;
        k.finalists = stages[i]->finalists;
      }
      v.dram_bytes += k.work.dram_bytes;
      v.l2_bytes += k.work.l2_bytes;
      v.flops += k.flops;
      result_.programs[v.name].push_back(t.program);
      result_.binaries[v.name].push_back(t.candidate.binary);
      result_.launches[v.name].push_back(t.launch);
      v.kernels.push_back(std::move(k));
    }
    v.verification = winners.size() == 1 ? winners[0]->evaluation->verification : trials_->verify_chain(winners);
    v.verified = v.verification.passed;
    if (!v.verified)
      trials_->reject({Schedule{v.name, "", {}}, "verify", "the winners together: " + v.verification.failure});
  }

  /// By stage and schedule, whichever worker came first. There are tens of thousands: each is spelled out once.
  static void sort_rejections(std::vector<Rejected>& rejections) {
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
  }

  void finish() {
    TuneReport& report = result_.report;
    report.simulated_binaries = trials_->simulated();
    report.simulated_now = trials_->simulated_now();
    sort_rejections(report.rejections);
    const VariantReport* best = nullptr;
    for (const VariantReport& v : report.variants)
      if (v.verified && v.seconds > 0 && (!best || v.seconds < best->seconds)) best = &v;
    // Where variants were timed side by side, that has the say, as it has in the verdict.
    if (!pairs_.empty() && report.find(pairs_.front().variant)->verified) best = report.find(pairs_.front().variant);
    if (best) {
      report.best_variant = best->name;
      report.score = report.floor_sustained.seconds / best->seconds;
      report.score_datasheet = report.floor_datasheet.seconds / best->seconds;
      if (report.gpu && best->measurement) score_at_clock(*best);
    }
    report.verdict = fusion_verdict(report.device, report.variants, kModelErrorBand, report.gpu ? &pairs_ : nullptr,
                                    report.time_origin());
    report.warnings = own_warnings(plan_.formula ? &*plan_.formula : nullptr, report);
  }

  /// The datasheet's ceilings, those of the SMs at the clock that the samples ran at: what power left of them.
  void score_at_clock(const VariantReport& best) {
    GpuRun& gpu = *result_.report.gpu;
    gpu.sm_mhz = best.measurement->sm_mhz;
    if (gpu.sm_mhz <= 0) return;
    const Device device = at_clock(context_.device, gpu.sm_mhz);
    gpu.floor_at_clock = problem_floor(device, plan_.required, problem_.dtype, RoofSet::kSustained);
    gpu.score_at_clock = gpu.floor_at_clock.seconds / best.seconds;
  }

  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  Clock::time_point started_;
  SearchPlan plan_;
  std::optional<Trials> trials_;
  std::vector<VariantPair> pairs_;
  TuneResult result_;
};

}  // namespace

Result<TuneResult> tune(const TuneContext& context, const Problem& problem, const TuneOptions& options) {
  return Tuner(context, problem, options).run();
}

}  // namespace roofgen
