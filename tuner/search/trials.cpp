#include "tuner/search/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <future>
#include <map>

#include "base/pool.h"
#include "generator/space/problem_json.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/search/timing.h"
#include "tuner/search/warm_start.h"

namespace roofgen {
namespace {

/// Candidates of a stage in one round where a search may end early: it ends between rounds.
constexpr size_t kShortRound = 4;
/// Where a search settles: a kernel's candidates end when one in so many of its share, and at least kLeastPatience,
/// were no faster in a row; after the best schedules of neighbours, at least kShortRound. On measured spaces twelve
/// candidates reach 98 % of the optimum (docs/internals/search.md, "The end").
constexpr size_t kPatience = 4, kLeastPatience = 6;
/// A variant that is as close to its floor has no more candidates: they could save a sixth of the model's error.
constexpr double kNoMore = 0.02;
/// Candidates of each kernel of a variant that is far slower than another.
constexpr size_t kOfTheHopeless = 5;

class TrialRun {
 public:
  TrialRun(const SearchRun& run, const SearchPlan& plan, Runner& runner)
      : run_(run),
        plan_(plan),
        runner_(runner),
        next_(plan.stages.size()),
        progress_(plan.stages.size()),
        untold_(plan.stages.size()) {
    trials_.stages.resize(plan.stages.size());
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      const StagePlan& p = plan.stages[s];
      strategies_.push_back(plan.strategy->make(p.space, run.options.seed));
      shares_ += p.share;
      warm_.push_back(warm_start(run, p));
      std::ranges::copy(first_points(run, p), std::back_inserter(next_[s]));
      for (const WarmPoint& w : warm_.back())
        if (!std::ranges::count(next_[s], w.point)) next_[s].push_back(w.point);
    }
  }

  /// Default schedules first, because they feed the stages after them; then TuneOptions::first; then warm starts; then
  /// the strategies' choice; then replacements for candidates that spilled or failed.
  Result<Trials> run() {
    for (const StagePlan& p : plan_.stages) {
      ROOFGEN_TRY(StagePoints points, StagePoints::of(*p.variant, p.stage(), plan_.scope));
      points_.push_back(std::move(points));
    }
    Pool pool(run_.threads());
    std::vector<Task*> held;  // later stages without a feeder yet
    for (bool defaults = true; !ended(defaults); defaults = false) {
      std::vector<Task*> round;
      for (size_t s = 0; s < plan_.stages.size(); ++s) {
        if (defaults) {
          ROOFGEN_CHECK(add_task(s, *plan_.stages[s].space.preset, round));
          // Good schedules are known: they share the round, and nvdisasm starts once.
          const size_t missing = missing_of(s);
          if (run_.options.settles && !next_[s].empty() && missing > 1) ROOFGEN_CHECK(ask(s, missing - 1, round));
        } else if (const size_t missing = missing_of(s); missing > 0) {
          ROOFGEN_CHECK(ask(s, missing, round));
        }
      }
      if (round.empty()) {
        trials_.ended = missing() > 0     ? "no candidate left"
                        : all_evaluated() ? "all evaluations done"
                                          : "the rest would hardly be faster";
        break;
      }
      ROOFGEN_CHECK(run_round(round, held, pool));
      if (times_by_code()) time(round);
      tell();
    }
    for (Task* t : held) reject_unfed(*t);
    settle_twins();
    count();
    if (trials_.tally.compiled == 0 && first_compile_error_ && !run_.trials_over()) return *first_compile_error_;
    return std::move(trials_);
  }

 private:
  // ---- The end ---------------------------------------------------------------------------------

  size_t verified(size_t stage) const {
    return static_cast<size_t>(std::ranges::count_if(trials_.stages[stage], &Task::verified));
  }
  bool all_evaluated() const {
    for (size_t s = 0; s < plan_.stages.size(); ++s)
      if (verified(s) < plan_.stages[s].share) return false;
    return true;
  }
  /// Verified candidates that a stage still lacks.
  size_t missing_of(size_t stage) const {
    const Variant& variant = *plan_.stages[stage].variant;
    if (has_settled(stage) || is_at_the_floor(variant)) return 0;
    size_t share = plan_.stages[stage].share;
    if (is_hopeless(variant)) share = std::min(share, kOfTheHopeless);
    return share - std::min(share, verified(stage));
  }
  size_t patience(size_t stage) const {
    return std::max(run_.options.settles ? kShortRound : kLeastPatience, plan_.stages[stage].share / kPatience);
  }
  /// Candidates that settle a stage if none is faster; by default as many as settle one from the start.
  size_t until_settled(size_t stage) const {
    const size_t most = patience(stage);
    return run_.options.settles ? most - std::min(most - 1, progress_[stage].slower_since) : most;
  }
  bool has_settled(size_t stage) const {
    return run_.settles() && !plan_.strategy->exhaustive && progress_[stage].slower_since >= patience(stage);
  }
  /// By the times that the strategies were told; infinite until each of its kernels has one.
  double seconds_of(const std::string& variant) const {
    double sum = 0;
    for (const size_t s : plan_.stages_of(variant)) sum += progress_[s].fastest;
    return sum;
  }
  /// Its best kernels take far longer than another variant.
  bool is_hopeless(const Variant& variant) const {
    if (!(run_.options.best_only || run_.settles()) || plan_.strategy->exhaustive) return false;
    const double seconds = seconds_of(variant.name);
    const double ratio = run_.options.best_only && times_by_code() ? kHopelessAlone : kHopelessRatio;
    return std::isfinite(seconds) && seconds > ratio * fastest_variant();
  }
  /// No candidate could be faster by more than kNoMore.
  bool is_at_the_floor(const Variant& variant) const {
    return run_.settles() && !plan_.strategy->exhaustive &&
           seconds_of(variant.name) <= (1 + kNoMore) * plan_.score.floor.seconds;
  }
  size_t missing() const {
    size_t out = 0;
    for (size_t s = 0; s < plan_.stages.size(); ++s) out += missing_of(s);
    return out;
  }

  bool ended(bool begins) {
    if (run_.interrupted())
      trials_.ended = "interrupted";
    else if (run_.trials_over())
      trials_.ended = "--time is over";
    else if (runner_.gpu_lost() && run_.place() == Place::kGpu)
      trials_.ended = "the GPU is lost";
    else if (!begins && is_good_enough())
      trials_.ended = "the score has reached --until";
    else if (!begins && cannot_pay())
      trials_.ended = "the rest cannot pay within --launches";
    return !trials_.ended.empty();
  }

  bool ends_early() const { return run_.options.until > 0 || run_.options.launches > 0 || run_.settles(); }

  bool is_good_enough() const {
    return run_.options.until > 0 && plan_.score.floor.seconds >= run_.options.until * fastest_variant();
  }

  /// Whether the candidates that are missing would take longer than all launches can save at most.
  bool cannot_pay() const {
    if (!(run_.options.launches > 0)) return false;
    size_t fresh = 0;  // remembered ones take no time
    for (const auto& tasks : trials_.stages)
      fresh += static_cast<size_t>(
          std::ranges::count_if(tasks, [](const Task& t) { return t.compiled_now || t.evaluated_now; }));
    if (fresh == 0) return false;
    const double each = (run_.elapsed_s() - begun_s_) / static_cast<double>(fresh);
    return (fastest_variant() - plan_.score.floor.seconds) * run_.options.launches <
           each * static_cast<double>(missing());
  }

  /// Seconds of the best variant, by the times that the strategies were told; infinite before one is whole.
  double fastest_variant() const {
    double out = HUGE_VAL;
    for (const VariantReport& v : plan_.reports) {
      if (!plan_.stages_of(v.name).empty()) out = std::min(out, seconds_of(v.name));
    }
    return out;
  }

  bool times_by_code() const {
    return !run_.context.gpu && run_.context.timer && run_.context.timer->unavailable().empty();
  }

  // ---- Asking and telling ----------------------------------------------------------------------

  Result<void> ask(size_t stage, size_t wanted, std::vector<Task*>& round) {
    wanted = std::min(wanted, plan_.stages[stage].most - trials_.stages[stage].size());
    if (run_.settles()) wanted = std::min(wanted, until_settled(stage));
    std::deque<size_t>& next = next_[stage];
    if (next.empty()) std::ranges::copy(strategies_[stage]->ask(wanted), std::back_inserter(next));
    wanted = std::min({wanted, next.size(), ends_early() ? kShortRound : next.size()});
    for (; wanted > 0; --wanted) {
      ROOFGEN_CHECK(add_task(stage, next.front(), round));
      next.pop_front();
    }
    return {};
  }

  Result<void> add_task(size_t stage, size_t point, std::vector<Task*>& round) {
    const StagePlan& plan = plan_.stages[stage];
    points_[stage].move_to(plan.points.schedule(point));
    const Legal& legal = points_[stage].point();
    Task task;
    task.point = point;
    task.candidate = {plan.variant, plan.index, legal.schedule, {}};
    ROOFGEN_TRY(task.program, generate(run_.context.files, plan.stage(), legal));
    ROOFGEN_TRY(task.launch, make_launch(plan.stage(), legal));
    trials_.stages[stage].push_back(std::move(task));
    round.push_back(&trials_.stages[stage].back());
    untold_[stage].push_back(round.back());
    return {};
  }

  /// By the interval model, from which the strategies learn. A candidate that it cannot time keeps the closed form's.
  void time(const std::vector<Task*>& tasks) {
    std::vector<TimedTask*> wanted;
    for (const Task* t : tasks)
      if (t->verified()) wanted.push_back(&timed(*t));
    time_code(run_, plan_, wanted, TimeModel::kInterval);
  }

  TimedTask& timed(const Task& task) { return trials_.timed.try_emplace(&task, run_, plan_, task).first->second; }

  void tell() {
    for (size_t s = 0; s < plan_.stages.size(); ++s)
      std::erase_if(untold_[s], [&](const Task* t) {
        if (!t->rejected && !t->evaluation) return false;
        const TrialResult result = result_of(*t);
        if (!result.failed && result.seconds > 0) progress_[s].tell(result.seconds);
        strategies_[s]->tell(t->point, result);
        return true;
      });
  }

  TrialResult result_of(const Task& task) {
    if (task.rejected) return {.failed = true};
    const StoredTrial trial = stored_trial(run_, plan_, task, timed(task).report());
    if (run_.context.store) run_.context.store->note(trial);
    return {.seconds = trial.seconds.value_or(0)};
  }

  // ---- One round -------------------------------------------------------------------------------

  Result<void> run_round(const std::vector<Task*>& tasks, std::vector<Task*>& held, Pool& pool) {
    std::vector<const Program*> programs;
    std::vector<const Binary*> fresh;
    for (Task* t : tasks) programs.push_back(&t->program);
    std::optional<Error> failed;
    run_.context.compiler.compile_all(programs, [&](CompileOutcome outcome) {
      Task& task = *tasks[outcome.index];
      if (accept(task, std::move(outcome)) && !has_twin(task) && !recall(task)) {
        fresh.push_back(&task.candidate.binary);
        const auto fed = runner_.is_fed(*task.candidate.variant, task.candidate.stage_index);
        if (!fed)
          failed = fed.error();
        else if (*fed)
          dispatch(task, pool);
        else
          held.push_back(&task);
      }
      tick();
      return !run_.trials_over() && !failed;
    });
    // Beside the verification: nvdisasm has one thread, and its start takes longer than its work.
    std::future<void> reading;
    if (times_by_code() && !fresh.empty())
      reading = std::async(std::launch::async, [&] { run_.context.timer->read(fresh); });
    pool.drain([&] { tick(); });
    if (failed) return *failed;
    // Later stages wait for a feeder: the first verified candidate of the stage before, default first.
    size_t last_stage = 0;
    for (const Task* t : held) last_stage = std::max(last_stage, t->candidate.stage_index);
    for (size_t stage = 1; stage <= last_stage && !run_.trials_over(); ++stage) {
      std::vector<Task*> waiting;
      for (Task* t : held) {
        bool fed = false;
        if (t->candidate.stage_index == stage) {
          ROOFGEN_TRY(fed, ensure_feeder(*t->candidate.variant, stage - 1));
        }
        if (fed)
          dispatch(*t, pool);
        else
          waiting.push_back(t);
      }
      held = std::move(waiting);
      pool.drain([&] { tick(); });
    }
    settle_twins();
    return {};
  }

  Result<bool> ensure_feeder(const Variant& v, size_t stage) {
    if (run_.place() == Place::kGpu && runner_.why_unfed(v, stage)) return false;
    ROOFGEN_TRY(const bool already, runner_.is_fed(v, stage + 1));
    if (already) return true;
    if (stage > 0) {
      ROOFGEN_TRY(const bool fed, ensure_feeder(v, stage - 1));
      if (!fed) return false;
    }
    for (size_t s = 0; s < plan_.stages.size(); ++s)
      if (plan_.stages[s].variant == &v && plan_.stages[s].index == stage)
        for (const Task& t : trials_.stages[s])
          if (t.verified()) return runner_.feed(t.candidate);
    return false;
  }

  /// False when the candidate goes no further than its compilation.
  bool accept(Task& task, CompileOutcome outcome) {
    ++finished_;
    if (!outcome.cached) {
      task.compiled_now = true;
      task.compile_s = outcome.seconds;
    }
    if (!outcome.binary) {
      if (!first_compile_error_) first_compile_error_ = outcome.binary.error();
      return reject(task, "compile", to_string(outcome.binary.error()));
    }
    task.compiled = true;
    Binary& b = task.candidate.binary = std::move(*outcome.binary);
    if (const auto why = undone_by_ptxas(b)) return reject(task, "compile", *why);
    // The model cannot judge a spill. Where candidates are timed, their times do.
    if (b.spill_bytes > 0 && run_.place() != Place::kGpu)
      return reject(task, "spill",
                    fmt::format("spill_bytes <= 0 ({} <= 0, at {} registers)", b.spill_bytes, b.registers));
    task.occupancy = occupancy(run_.context.device, b, task.launch);
    if (task.occupancy.ctas_per_sm == 0)
      return reject(task, "occupancy",
                    fmt::format("not one CTA fits an SM: {} registers x {} threads, {} bytes of shared memory",
                                b.registers, task.launch.block.count(), task.launch.smem_bytes));
    return true;
  }

  /// True when an earlier candidate runs the same binary in the same way: a parameter may change nothing.
  bool has_twin(Task& task) {
    task.key = runner_.key_of(task, run_.place());
    const auto [first, is_new] = first_.try_emplace(task.key, &task);
    if (!is_new) twins_.emplace_back(&task, first->second);
    return !is_new;
  }
  /// Candidates take the results of their twins.
  void settle_twins() {
    std::erase_if(twins_, [&](const auto& pair) {
      const auto& [task, first] = pair;
      if (!first->evaluation && !first->rejected) return false;
      ++finished_;
      task->evaluation = first->evaluation;
      if (first->rejected) reject(*task, first->rejected->stage, first->rejected->reason);
      return true;
    });
  }

  /// True when the store knows this evaluation.
  bool recall(Task& task) {
    task.evaluation = runner_.recall(task.key);
    if (!task.evaluation) return false;
    ++finished_;
    conclude(task);
    return true;
  }

  /// Runs the candidate on a thread of the pool, which alone changes `task` until the pool is drained.
  void dispatch(Task& task, Pool& pool) {
    pool.push_until([this, &task] {
      if (run_.trials_over()) return true;
      const std::unique_ptr<EvaluationClaim> claim = runner_.claim(task.key);
      if (!claim) return false;
      if (recall(task)) return true;
      const double begun = run_.elapsed_s();
      auto evaluated = runner_.evaluate(task);
      task.check_s = run_.elapsed_s() - begun;
      task.evaluated_now = true;
      ++finished_;
      if (evaluated) {
        task.evaluation = std::move(*evaluated);
        conclude(task);
      } else if (!runner_.gpu_lost()) {
        reject(task, "run", to_string(evaluated.error()));
      }
      return true;
    });
  }

  void conclude(Task& task) const {
    const Evaluation& e = *task.evaluation;
    if (!e.verification.passed) reject(task, e.fault.empty() ? "verify" : e.fault, e.verification.failure);
  }

  bool reject(Task& task, std::string stage, std::string reason) const {
    task.rejected = Rejected{task.candidate.schedule, std::move(stage), std::move(reason)};
    if (run_.context.store) run_.context.store->note(stored_trial(run_, plan_, task));
    return false;
  }

  void reject_unfed(Task& task) const {
    if (run_.trials_over() || runner_.gpu_lost()) return;
    const Candidate& c = task.candidate;
    const std::string& before = c.variant->stages[c.stage_index - 1].name;
    if (const std::string* why = runner_.why_unfed(*c.variant, c.stage_index - 1))
      reject(task, "gpu memory", fmt::format("{} cannot feed it: {}", before, *why));
    else
      reject(task, "feeder", fmt::format("no verified {} to feed it", before));
  }

  void tick() const {
    if (!run_.options.progress) return;
    const uint64_t done = finished_;
    run_.options.progress("compiling and verifying", done, std::max(done, 2 * shares_));
  }

  // ---- The sum ---------------------------------------------------------------------------------

  void count() {
    Tally& tally = trials_.tally;
    for (const auto& tasks : trials_.stages)
      for (const Task& t : tasks) {
        tally.compiled += t.compiled;
        tally.compiled_now += t.compiled_now;
        tally.evaluated_now += t.evaluated_now;
        if (t.rejected) tally.rejections.push_back(*t.rejected);
        if (!t.evaluation || run_.place() == Place::kGpu) continue;
        tally.add_simulated(t.candidate.binary, *t.evaluation, t.evaluated_now);
      }
    for (size_t s = 0; s < warm_.size(); ++s)
      for (const WarmPoint& w : warm_[s]) {
        if (std::ranges::find(trials_.stages[s], w.point, &Task::point) == trials_.stages[s].end()) continue;
        std::vector<WarmStart>& all = trials_.warm_starts;
        auto of = std::ranges::find_if(
            all, [&](const WarmStart& x) { return x.problem == w.problem && x.device == w.device; });
        if (of == all.end()) of = all.insert(all.end(), {w.problem, w.device});
        ++of->candidates;
      }
  }

  /// Of the verified candidates of a stage.
  struct Progress {
    double fastest = HUGE_VAL;  ///< seconds
    size_t slower_since = 0;

    void tell(double seconds) {
      slower_since = seconds < (1 - kTie) * fastest ? 0 : slower_since + 1;
      fastest = std::min(fastest, seconds);
    }
  };

  const SearchRun& run_;
  const SearchPlan& plan_;
  Runner& runner_;
  const double begun_s_ = run_.elapsed_s();
  std::vector<std::unique_ptr<Strategy>> strategies_;
  std::vector<StagePoints> points_;  ///< by stage, as the next three
  std::vector<std::vector<WarmPoint>> warm_;
  std::vector<std::deque<size_t>> next_;          ///< points of warm starts or asked for, not tried yet
  std::vector<Progress> progress_;                ///< of those told
  std::map<StoreKey, Task*> first_;               ///< the first candidate of each key
  std::vector<std::pair<Task*, Task*>> twins_;    ///< each with the first of its key, whose result it waits for
  std::vector<std::vector<const Task*>> untold_;  ///< by stage: tried, and the strategy does not know the result yet
  Trials trials_;
  std::optional<Error> first_compile_error_;
  std::atomic<uint64_t> finished_{0};
  uint64_t shares_ = 0;
};

}  // namespace

void Tally::add_simulated(const Binary& binary, const Evaluation& evaluation, bool now) {
  const Verification& v = evaluation.verification;
  const bool whole = v.ctas_run > 0 && v.ctas_run == v.ctas_total;
  if (whole && now) simulated_now.insert(binary.digest);
  if (v.passed && evaluation.fault.empty()) (whole ? simulated : sliced).insert(binary.digest);
}

Tally& Tally::operator+=(const Tally& other) {
  rejections.insert(rejections.end(), other.rejections.begin(), other.rejections.end());
  compiled += other.compiled;
  compiled_now += other.compiled_now;
  evaluated_now += other.evaluated_now;
  simulated.insert(other.simulated.begin(), other.simulated.end());
  sliced.insert(other.sliced.begin(), other.sliced.end());
  simulated_now.insert(other.simulated_now.begin(), other.simulated_now.end());
  return *this;
}

StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task) {
  const Candidate& c = task.candidate;
  StoredTrial out;
  out.op = run.problem.op;
  out.problem = to_string(run.problem);
  out.device = run.context.device.name;
  out.variant = c.variant->name;
  out.stage = c.stage().name;
  out.params = json_line(params_json(c.schedule.params));
  out.binary = c.binary.digest;
  out.executor = executor_text(run, run.place());
  out.outcome = task.rejected ? task.rejected->stage : StoredTrial::kVerified;
  if (task.rejected) out.reason = task.rejected->reason;
  out.floor_seconds = plan.score.floor.seconds;
  // "NVRTC 13.0 at <path>": paths are of one machine.
  out.compiler = run.context.compiler.description();
  out.compiler.resize(std::min(out.compiler.find(" at "), out.compiler.size()));
  return out;
}

StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task, const KernelReport& report) {
  StoredTrial out = stored_trial(run, plan, task);
  // Without counts, the time of the one launch that the GPU ran.
  if (report.measurement) {
    out.seconds = report.seconds;
    out.origin = to_string(run.context.gpu->origin());
  } else if (report.counted || !run.context.gpu) {
    out.seconds = report.seconds;
    out.origin = to_string(Origin::kModel);
    out.time_model = to_string(report.time.model);
  } else if (task.evaluation->measured_ns) {
    out.seconds = 1e-9 * *task.evaluation->measured_ns;
    out.origin = to_string(run.context.gpu->origin());
  }
  return out;
}

Result<Trials> run_trials(const SearchRun& run, const SearchPlan& plan, Runner& runner) {
  return TrialRun(run, plan, runner).run();
}

}  // namespace roofgen
