#include "tuner/search/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/pool.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/strategy/learnt_prior.h"

namespace roofgen {
namespace {

/// Warm-up of every measurement after the first: the GPU was idle for seconds only.
constexpr double kStillWarm_s = 0.5;

/// Share of the time that --time leaves for a measurement: its warm-up takes no more.
constexpr double kMostWarmUp = 0.15;

StageTimes verified_of(const Trials& trials, size_t stage) {
  StageTimes out;
  for (const Task& t : trials.stages[stage])
    if (t.verified()) out.tasks.push_back(trials.timed.at(&t));
  return out;
}

std::vector<Verification> verifications_of(const VariantTimes& variant) {
  std::vector<Verification> out;
  for (const StageTimes& s : variant.stages) out.push_back(s.best().report().verification);
  return out;
}

/// Verifies the winners in a row, with all inputs. `simulated`: the simulator ran something in this call. Their own
/// verifications stand where only device data changed since a GPU ran them, or the search was interrupted. The stage
/// whose winner is wrong and rejected, if any.
std::optional<size_t> verify_winners(const SearchRun& run, VariantTimes& variant, bool simulated, Runner& runner,
                                     Tally& tally) {
  const bool all_inputs_ran = run.place() != Place::kSimulator;
  std::optional<size_t> wrong;
  if (variant.stages.size() > 1 || !all_inputs_ran) {
    const bool stands = run.trials_over() || (all_inputs_ran && !simulated);
    const std::vector<Verification> each = runner.verify_chain(variant.winners(), verifications_of(variant), stands);
    for (size_t i = 0; i < each.size(); ++i) {
      TimedTask& winner = variant.stages[i].best();
      winner.set_verification(each[i]);
      if (each[i].passed) continue;
      tally.rejections.push_back({winner.report().schedule, "verify", each[i].failure});
      wrong = i;
    }
  }
  variant.verification = sum_of(verifications_of(variant));
  return wrong;
}

/// Verifies the winners on the whole grid. The stage whose winner is wrong there and rejected, if any.
std::optional<size_t> verify_grid(const SearchRun& run, Runner& runner, VariantTimes& times, Tally& tally) {
  const Verifier::Grid grid = run.trials_over()
                                  ? Verifier::Grid{{}, 0, run.interrupted() ? "interrupted" : "the time was over"}
                                  : runner.verify_grid(times.winners());
  grid.add_to(times.verification);
  if (!grid.failed()) return std::nullopt;
  tally.rejections.push_back({times.stages[grid.wrong].best().report().schedule, "verify", grid.verification.failure});
  return grid.wrong;
}

// ---- By the model ------------------------------------------------------------------------------

/// Candidates of a stage between which the event model decides, the best of the interval model. On the recorded spaces
/// the best of the interval model's first five is within 8 % of the best point (docs/evidence/fidelity.md, "Accuracy").
constexpr size_t kDecided = 5;

/// The same launch as a candidate's, for the models.
KernelLaunch launch_of(const SearchRun& run, const SearchPlan& plan, const TimedTask& t) {
  const Candidate& c = t.task().candidate;
  const KernelReport& k = t.report();
  return {&c.binary,
          &t.task().launch,
          initial_contents(run.context.op, run.problem, plan.temporaries.at(c.variant)),
          fmt::format("{} {}", to_string(run.problem), c.variant->name),
          k.counted ? std::optional(k.work.dram_bytes) : std::nullopt,
          &t.evaluation().lines};
}

/// Times the candidates of all variants by their machine code: the closed form prunes, the interval model ranks, the
/// event model decides.
class CodeTimes {
 public:
  CodeTimes(const SearchRun& run, const SearchPlan& plan, Timings& out) : run_(run), plan_(plan), out_(out) {}

  void run() {
    if (!run_.context.timer) return;
    out_.closed_form_because = run_.context.timer->unavailable();
    if (!out_.closed_form_because.empty()) return;
    std::vector<TimedTask*> wanted;
    for (VariantTimes& v : out_.variants)
      for (StageTimes& s : v.stages)
        for (TimedTask* t : promising(s))
          if (!t->report().code) wanted.push_back(t);
    time(wanted, TimeModel::kInterval);
    wanted.clear();
    for (VariantTimes& v : out_.variants)
      for (StageTimes& s : v.stages) {
        std::vector<TimedTask*> timed;
        for (TimedTask& t : s.tasks)
          if (t.report().code) timed.push_back(&t);
        std::stable_sort(timed.begin(), timed.end(), [](const TimedTask* a, const TimedTask* b) {
          return a->report().code->seconds < b->report().code->seconds;
        });
        timed.resize(std::min(timed.size(), kDecided));
        wanted.insert(wanted.end(), timed.begin(), timed.end());
      }
    time(wanted, TimeModel::kEvent);
    wanted.clear();
    for (VariantTimes& v : out_.variants)
      for (StageTimes& s : v.stages)
        for (TimedTask& t : s.tasks) wanted.push_back(&t);
    forget_code(run_, wanted);
  }

 private:
  std::vector<TimedTask*> promising(StageTimes& stage) const {
    std::vector<std::pair<double, TimedTask*>> all;
    double least = std::numeric_limits<double>::infinity();
    for (TimedTask& t : stage.tasks) {
      all.emplace_back(t.closed_form_seconds(), &t);
      least = std::min(least, all.back().first);
    }
    std::vector<TimedTask*> out;
    for (const auto& [seconds, t] : all)
      if (seconds <= kHopelessRatio * least) out.push_back(t);
    return out;
  }

  void time(const std::vector<TimedTask*>& tasks, TimeModel model) {
    const std::string failure = time_code(run_, plan_, tasks, model);
    if (out_.closed_form_because.empty()) out_.closed_form_because = failure;
  }

  const SearchRun& run_;
  const SearchPlan& plan_;
  Timings& out_;
};

/// By the times that the strategies were told.
void leave_out_hopeless(const SearchRun& run, std::vector<VariantTimes>& variants) {
  const bool by_code = run.context.timer && run.context.timer->unavailable().empty();
  std::vector<double> seconds;
  for (const VariantTimes& v : variants) {
    double& sum = seconds.emplace_back(v.complete ? 0 : HUGE_VAL);
    for (const StageTimes& s : v.stages) {
      double least = HUGE_VAL;
      for (const TimedTask& t : s.tasks) least = std::min(least, t.report().seconds);
      sum += least;
    }
  }
  const double least = std::ranges::min(seconds);
  for (size_t v = 0; v < variants.size(); ++v) {
    if (seconds[v] <= (by_code ? kHopelessAlone : kHopelessRatio) * least) continue;
    variants[v].complete = false;
    variants[v].stages.clear();
  }
}

/// The fastest by the best model; among ties fewer registers, then less shared memory, then the first tried, which is
/// the default schedule where that is among them.
std::optional<size_t> fastest_by_model(const StageTimes& stage) {
  TimeModel model = TimeModel::kClosedForm;
  for (const TimedTask& t : stage.tasks) model = std::max(model, t.report().time.model);
  double least = std::numeric_limits<double>::infinity();
  for (const TimedTask& t : stage.tasks)
    if (t.report().time.model == model) least = std::min(least, t.report().seconds);
  const auto resources = [&](size_t i) {
    const KernelReport& k = stage.tasks[i].report();
    return std::pair(int64_t{k.registers}, k.smem_bytes);
  };
  std::optional<size_t> best;
  for (size_t i = 0; i < stage.tasks.size(); ++i) {
    const KernelReport& k = stage.tasks[i].report();
    if (k.time.model == model && k.seconds <= least * (1 + kTie) && (!best || resources(i) < resources(*best)))
      best = i;
  }
  return best;
}

double modelled_seconds(const VariantTimes& variant) {
  double sum = 0;
  for (const StageTimes& s : variant.stages) sum += s.best().report().seconds;
  return sum;
}

/// Verifies the winners of each variant in a row, and the fastest variant on the whole grid. Winners that fail make
/// room for the next fastest, and their variant may then lose to another. The report says of the other variants that
/// their whole grids did not run.
void verify_by_model(const SearchRun& run, const Trials& trials, Runner& runner, Timings& out) {
  const auto drop_winner = [&](VariantTimes& v, size_t wrong) {
    StageTimes& stage = v.stages[wrong];
    stage.tasks.erase(stage.tasks.begin() + static_cast<ptrdiff_t>(*stage.winner));
    stage.winner = fastest_by_model(stage);
    v.complete = stage.winner.has_value();
  };
  const auto in_a_row = [&](VariantTimes& v) {
    while (v.complete) {
      const auto wrong = verify_winners(run, v, !trials.tally.simulated_now.empty(), runner, out.tally);
      if (!wrong) return;
      drop_winner(v, *wrong);
    }
  };
  for (VariantTimes& v : out.variants) in_a_row(v);
  for (;;) {
    VariantTimes* fastest = nullptr;
    double least = HUGE_VAL;
    for (VariantTimes& v : out.variants)
      if (v.complete && v.verification.passed && modelled_seconds(v) < least) fastest = &v, least = modelled_seconds(v);
    if (!fastest) return;
    const auto wrong = verify_grid(run, runner, *fastest, out.tally);
    if (!wrong) {
      for (VariantTimes& v : out.variants)
        if (v.complete && v.verification.passed && &v != fastest)
          v.verification.not_run.push_back("whole grid not run: " + fastest->variant + " is faster");
      return;
    }
    drop_winner(*fastest, *wrong);
    in_a_row(*fastest);
  }
}

// ---- On a GPU ----------------------------------------------------------------------------------

class GpuTiming {
 public:
  GpuTiming(const SearchRun& run, const SearchPlan& plan, const Trials& trials, Runner& runner)
      : run_(run), plan_(plan), trials_(trials), runner_(runner) {}

  /// Stage by stage, each after the winners before it; then whole variants against each other. When the GPU is lost,
  /// the finished part stays.
  Result<Timings> time() {
    runner_.release_gpu();
    for (const VariantReport& v : plan_.reports) {
      VariantTimes times{v.name, {}, false, {}, std::nullopt};
      if (v.available) ROOFGEN_CHECK(time_stages(times));
      if (times.complete) ROOFGEN_CHECK(verify(times));
      out_.variants.push_back(std::move(times));
    }
    race();
    if (out_.lost_because.empty()) out_.lost_because = runner_.gpu_lost_because();
    if (out_.timed > 0) out_.origin = run_.context.gpu->origin();
    return std::move(out_);
  }

 private:
  bool lost() const { return lost_ || runner_.gpu_lost(); }
  void reject(Rejected rejected) { out_.tally.rejections.push_back(std::move(rejected)); }

  /// The winners in a row, and in the simulator on the whole grid. Those that fail there make room for the next
  /// fastest.
  Result<void> verify(VariantTimes& times) {
    for (;;) {
      const bool simulated = !trials_.tally.simulated_now.empty() || !out_.tally.simulated_now.empty();
      if (verify_winners(run_, times, simulated, runner_, out_.tally)) return {};
      const auto wrong = verify_grid(run_, runner_, times, out_.tally);
      if (!wrong) return {};
      StageTimes& stage = times.stages[*wrong];
      Verification failed = stage.best().report().verification;
      failed.passed = false;
      stage.best().set_verification(std::move(failed));
      std::erase(stage.ranking, *stage.winner);
      ROOFGEN_TRY(stage.winner, confirm(stage, *wrong + 1 < times.stages.size()));
      stage.finalists.clear();  // they compare with the rejected winner
      times.complete = stage.winner.has_value();
      if (!times.complete) return {};
    }
  }

  Result<void> time_stages(VariantTimes& variant) {
    const std::vector<size_t> stages = plan_.stages_of(variant.variant);
    for (size_t s : stages) {
      if (lost()) return {};
      StageTimes stage = verified_of(trials_, s);
      const auto ranked = rank(plan_.stages[s].stage().name, variant.winners(), stage);
      if (ranked) {
        ROOFGEN_TRY(stage.winner, confirm(stage, s != stages.back()));
      }
      variant.stages.push_back(std::move(stage));
      if (!ranked) cannot_time(variant.variant, ranked.error());
      if (!variant.stages.back().winner) return {};
    }
    variant.complete = true;
    return {};
  }

  /// Too little memory for the buffers of one measurement costs that measurement; a lost GPU costs all that follow.
  void cannot_time(const std::string& what, const Error& error) {
    const Fault fault = run_.context.gpu->fault();
    if (fault == Fault::kLost) return runner_.lose_gpu(error);
    reject({Schedule{what, "", {}}, fault == Fault::kMemory ? "gpu memory" : "gpu", to_string(error)});
    if (run_.options.warn) run_.options.warn(fmt::format("{}: {}", what, error.message));
  }

  // ---- One stage -------------------------------------------------------------------------------

  /// Times the candidates of a stage on the outputs of `before`. An Error when nothing could be timed.
  Result<void> rank(const std::string& name, const std::vector<const Task*>& before, StageTimes& stage) {
    if (stage.tasks.empty()) return {};
    std::vector<size_t> all(stage.tasks.size());
    std::iota(all.begin(), all.end(), size_t{0});
    const std::string phase = "timing " + name;
    const size_t most = std::max<size_t>(2, run_.options.batch);
    if (all.size() <= most) return time_batch(phase, before, all, true, stage);

    // Batches that each include the default, then the best of all batches together. The model's first choices come
    // first: their error decides which others are worth a measurement.
    std::optional<LearntPrior> prior = prior_of(stage);
    std::vector<size_t> left(all.begin() + 1, all.end());
    const size_t batches = (left.size() + most - 2) / (most - 1), each = (left.size() + batches - 1) / batches;
    for (bool first = true; !left.empty() && !lost_ && !out_.interrupted; first = false) {
      if (prior) sort_out(*prior, name, stage, left);
      std::vector<size_t> some{0};
      const size_t take = std::min(each, left.size());
      some.insert(some.end(), left.begin(), left.begin() + static_cast<ptrdiff_t>(take));
      left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(take));
      if (some.size() == 1) break;
      ROOFGEN_CHECK(time_batch(phase, before, some, false, stage));
      for (size_t i : some)
        if (prior && stage.tasks[i].report().measurement && (i > 0 || first))
          prior->learn(i, stage.tasks[i].report().seconds);
    }
    std::erase_if(all, [&](size_t i) { return !stage.tasks[i].report().measurement; });
    const auto median = [&](size_t i) { return stage.tasks[i].report().seconds; };
    std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) { return median(a) < median(b); });
    const size_t finalists = std::min(all.size(), 2 * run_.options.protocol.finalists);
    std::vector<size_t> best(all.begin(), all.begin() + static_cast<ptrdiff_t>(finalists));
    std::vector<size_t> rest(all.begin() + static_cast<ptrdiff_t>(finalists), all.end());
    if (best.empty()) return {};
    // The default is timed beside the best, however slow: its time and the winner's are compared in one measurement.
    if (std::erase(rest, size_t{0}) > 0) best.push_back(0);
    if (lost_ || out_.interrupted) {
      stage.ranking = best;
    } else {
      ROOFGEN_CHECK(time_batch(phase, before, best, true, stage));
    }
    for (size_t i : rest)
      if (stage.tasks[i].report().measurement) stage.ranking.push_back(i);
    return {};
  }

  /// The interval model's times of the candidates, in their order; nullopt where it lacks one.
  std::optional<LearntPrior> prior_of(StageTimes& stage) const {
    if (!run_.context.timer || !run_.context.timer->unavailable().empty()) return std::nullopt;
    if (run_.options.strategy == "exhaustive") return std::nullopt;  // every candidate is to have a time
    std::vector<TimedTask*> tasks;
    for (TimedTask& t : stage.tasks) tasks.push_back(&t);
    const bool complete = time_code(run_, plan_, tasks, TimeModel::kInterval).empty();
    forget_code(run_, tasks);
    LearntPrior out;
    std::map<std::pair<std::string, ParamValue>, uint32_t> numbers;
    for (TimedTask& t : stage.tasks) {
      LearntPrior::Values values;
      for (const auto& param : t.report().schedule.params)
        values.push_back(numbers.try_emplace(param, static_cast<uint32_t>(numbers.size())).first->second);
      if (complete) out.add(t.report().code->seconds, std::move(values));
      t.set_code(std::nullopt);  // the report's times are measured
    }
    return complete ? std::optional(std::move(out)) : std::nullopt;
  }

  /// Sorts the candidates that are left by their corrected predictions, and drops those that the error learnt so far
  /// leaves above the fastest one.
  void sort_out(const LearntPrior& prior, const std::string& name, const StageTimes& stage, std::vector<size_t>& left) {
    std::stable_sort(left.begin(), left.end(),
                     [&](size_t a, size_t b) { return prior.corrected(a) < prior.corrected(b); });
    double best = std::numeric_limits<double>::infinity();
    for (const TimedTask& t : stage.tasks)
      if (t.report().measurement) best = std::min(best, t.report().seconds);
    const double error = prior.error();
    const auto hopeless =
        std::find_if(left.begin(), left.end(), [&](size_t i) { return prior.corrected(i) > best * error; });
    if (hopeless == left.end()) return;
    out_.notes.push_back(fmt::format(
        "{}: {} candidates were not timed: the interval model, corrected by the times measured before, puts "
        "them more than its error of {:.0f} % above the fastest",
        name, left.end() - hopeless, 100 * (error - 1)));
    left.erase(hopeless, left.end());
  }

  /// One measurement of the candidates `in`. The last one also ranks them.
  Result<void> time_batch(const std::string& phase, const std::vector<const Task*>& before,
                          const std::vector<size_t>& in, bool last, StageTimes& stage) {
    Workload workload;
    for (const Task* t : before) workload.prepare.push_back(kernel_of(*t));
    std::vector<Contender> contenders;
    for (size_t i : in) {
      const Task& t = stage.tasks[i].task();
      contenders.push_back(contender(to_string(t.candidate.schedule), {&t}, i == 0));
    }
    workload.buffers = buffers(contenders, workload.prepare);
    ROOFGEN_TRY(Standings standings, measure_all(workload, contenders, phase.c_str(), last));
    for (size_t i = 0; i < in.size(); ++i) {
      TimedTask& t = stage.tasks[in[i]];
      Outcome& outcome = standings.outcomes[i];
      if (outcome.measurement) {
        out_.timed += !t.report().measurement;
        t.set_measurement(std::move(outcome.measurement));
      } else if (outcome.rejected) {
        // A candidate that fails in a later batch does not keep the time of an earlier one.
        t.set_measurement(std::nullopt);
        reject({t.report().schedule, outcome.rejected->stage, outcome.rejected->reason});
      }
    }
    if (!last) return {};
    for (size_t i : standings.order) stage.ranking.push_back(in[i]);
    for (const Pairing& p : standings.finalists) {
      const TimedTask& t = stage.tasks[in[p.contender]];
      const std::optional<Measurement>& measured = t.report().measurement;
      if (!measured) continue;
      stage.finalists.push_back(
          {t.report().schedule, ranking_timing(*measured)->median_ns, p.ratio, p.low, p.high, p.tied});
    }
    return {};
  }

  /// The fastest candidate of a stage in which the simulator finds no fault either. With --check gpu the simulator is
  /// not asked. After Ctrl-C or --time, GPU verification alone suffices.
  Result<std::optional<size_t>> confirm(StageTimes& stage, bool feeds) {
    for (size_t i : stage.ranking) {
      if (run_.options.check == Check::kFinalists && !run_.over()) {
        TimedTask& t = stage.tasks[i];
        if (!simulate(t)) continue;
        if (feeds) ROOFGEN_CHECK(runner_.feed_simulator(t.task().candidate));
      }
      // The pairs compare with the fastest. They say nothing about another winner.
      if (i != stage.ranking.front()) stage.finalists.clear();
      return std::optional(i);
    }
    return std::optional<size_t>();
  }

  /// Runs a candidate in the simulator that has only run on the GPU. False when it fails there; it is then rejected.
  bool simulate(TimedTask& t) {
    const Schedule& schedule = t.report().schedule;
    std::optional<Evaluation> e = runner_.recall(runner_.key_of(t.task(), Place::kSimulator));
    const bool now = !e;
    if (now) {
      auto ran = runner_.simulate(t.task());
      ++out_.tally.evaluated_now;
      if (!ran) {
        reject({schedule, "run", to_string(ran.error())});
        return false;
      }
      e = std::move(*ran);
    }
    out_.tally.add_simulated(t.task().candidate.binary, *e, now);
    e->measured_ns = t.evaluation().measured_ns;
    Verification& v = e->verification;
    v.add_checks(t.evaluation().verification);
    if (!v.passed) {
      v.failure = "in the simulator, though it passed on the GPU: " + v.failure;
      reject({schedule, "verify", v.failure});
    }
    t.set_evaluation(std::move(*e));
    return t.verified();
  }

  // ---- Whole variants --------------------------------------------------------------------------

  /// Times the verified variants side by side. Without a measurement, a variant's time is the sum of its kernels'
  /// times.
  void race() {
    std::vector<VariantTimes*> chains;
    for (VariantTimes& v : out_.variants)
      if (v.complete && v.verification.passed) chains.push_back(&v);
    for (VariantTimes* v : chains)
      if (v->stages.size() == 1) v->measurement = v->stages[0].best().report().measurement;
    const bool alone = chains.size() == 1 && chains[0]->stages.size() == 1;
    if (chains.empty() || alone || lost() || out_.interrupted) return;
    std::vector<Contender> contenders;
    for (const VariantTimes* v : chains) contenders.push_back(contender(v->variant, v->winners(), true));
    auto standings = measure_all({buffers(contenders, {}), {}}, contenders, "timing variants", true);
    if (!standings) return cannot_time("the variants side by side", standings.error());
    for (size_t i = 0; i < chains.size(); ++i) {
      Outcome& outcome = standings->outcomes[i];
      chains[i]->measurement = std::move(outcome.measurement);
      if (outcome.rejected)
        reject({Schedule{chains[i]->variant, "", {}}, outcome.rejected->stage, outcome.rejected->reason});
    }
    for (const Pairing& p : standings->finalists)
      out_.pairs.push_back({chains[p.contender]->variant, {p.ratio, p.low, p.high}});
  }

  // ---- One measurement -------------------------------------------------------------------------

  /// A buffer that the problem does not ask for (LSE) is a null pointer.
  Contender::Kernel kernel_of(const Task& task) const {
    Contender::Kernel out{&task.candidate.binary, task.launch};
    std::set<std::string> known;
    for (const Buffer& b : run_.context.op.buffers(run_.problem)) known.insert(b.name);
    for (const Buffer& b : plan_.temporaries.at(task.candidate.variant)) known.insert(b.name);
    for (Arg& arg : out.launch.args)
      if (arg.is_buffer && !known.count(arg.name)) {
        arg.is_buffer = false;
        arg.bits = 0;
      }
    return out;
  }

  /// `keep`: timed to the end even when far behind.
  Contender contender(const std::string& name, const std::vector<const Task*>& tasks, bool keep) const {
    Contender out;
    out.name = name;
    out.keep = keep;
    for (const Task* t : tasks) {
      out.kernels.push_back(kernel_of(*t));
      out.registers = std::max(out.registers, t->candidate.binary.registers);
      out.smem_bytes = std::max<int64_t>(out.smem_bytes, t->candidate.binary.static_smem_bytes + t->launch.smem_bytes);
    }
    return out;
  }

  std::vector<BenchBuffer> buffers(const std::vector<Contender>& contenders,
                                   const std::vector<Contender::Kernel>& prepare) const {
    std::set<std::string> used;
    const auto use = [&](const std::vector<Contender::Kernel>& kernels) {
      for (const Contender::Kernel& k : kernels)
        for (const Arg& arg : k.launch.args)
          if (arg.is_buffer) used.insert(arg.name);
    };
    for (const Contender& c : contenders) use(c.kernels);
    use(prepare);
    std::vector<BenchBuffer> out;
    const auto add = [&](const Buffer& b) {
      if (used.count(b.name) == 0) return;
      const auto named = [&](const BenchBuffer& other) { return other.name == b.name; };
      // Variants share their temporaries by name, and each has its own size: the parts of four splits, of two.
      if (const auto same = std::ranges::find_if(out, named); same != out.end()) {
        same->bytes = std::max(same->bytes, b.bytes);
        return;
      }
      Fill fill = nullptr;
      if (b.has_contents())  // appending twice writes the same keys
        fill = run_.context.op.filler(run_.problem, InputPattern::kNormal, b.name);
      // Once: each launch leaves it zero.
      if (b.zeroed) fill = [](uint64_t, std::span<std::byte> to) { std::ranges::fill(to, std::byte{0}); };
      out.push_back({b.name, b.bytes, std::move(fill)});
    };
    for (const Buffer& b : run_.context.op.buffers(run_.problem)) add(b);
    for (const auto& [variant, temporaries] : plan_.temporaries)
      for (const Buffer& b : temporaries) add(b);
    return out;
  }

  /// `hot`: also hot times, where the protocol has them beside the cold ones.
  Result<Standings> measure_all(const Workload& workload, const std::vector<Contender>& contenders, const char* phase,
                                bool hot) {
    const TuneOptions& options = run_.options;
    BenchHooks hooks;
    hooks.warn = options.warn;
    hooks.stop = options.stop;
    if (options.progress)
      hooks.progress = [&](const char*, uint64_t done, uint64_t total) { options.progress(phase, done, total); };
    if (options.bench_clock) hooks.clock = *options.bench_clock;
    Protocol protocol = options.protocol;
    if (options.time_limit_s > 0) {
      const double left_s = std::max(0.0, options.time_limit_s - run_.elapsed_s());
      hooks.deadline_s = hooks.clock.now_s() + left_s;
      protocol.warmup_s = std::min(protocol.warmup_s, kMostWarmUp * left_s);
    }
    protocol.hot = protocol.hot && (hot || !protocol.cold);
    if (warm_) protocol.warmup_s = std::min(protocol.warmup_s, kStillWarm_s);
    warm_ = true;
    ROOFGEN_TRY(Standings standings, measure(*run_.context.gpu, workload, contenders, protocol, hooks));
    out_.buffer_sets = out_.timed == 0 ? standings.buffer_sets : std::min(out_.buffer_sets, standings.buffer_sets);
    for (std::string& note : standings.notes)
      if (std::find(out_.notes.begin(), out_.notes.end(), note) == out_.notes.end())
        out_.notes.push_back(std::move(note));
    if (standings.lost) {
      lost_ = true;
      out_.lost_because = standings.lost_because;
    }
    out_.interrupted |= standings.interrupted;
    return standings;
  }

  const SearchRun& run_;
  const SearchPlan& plan_;
  const Trials& trials_;
  Runner& runner_;
  Timings out_;
  bool lost_ = false;
  bool warm_ = false;  ///< something was timed before
};

}  // namespace

std::string time_code(const SearchRun& run, const SearchPlan& plan, const std::vector<TimedTask*>& tasks,
                      TimeModel model) {
  KernelTimer& timer = *run.context.timer;
  std::vector<std::pair<TimedTask*, KernelLaunch>> open;
  std::vector<const Binary*> binaries;
  for (TimedTask* t : tasks) {
    KernelLaunch launch = launch_of(run, plan, *t);
    if (auto known = timer.recall(launch, model)) {
      t->set_code(std::move(*known));
      continue;
    }
    binaries.push_back(launch.binary);
    open.emplace_back(t, std::move(launch));
  }
  if (!open.empty() && run.trials_over()) return run.interrupted() ? "interrupted" : "the time was over";
  if (!open.empty()) timer.read(binaries);
  std::vector<std::string> failures(open.size());
  Pool pool(run.threads());
  std::atomic<size_t> done{0};
  for (size_t i = 0; i < open.size(); ++i)
    pool.push_until([&, i] {
      if (run.trials_over()) {
        failures[i] = run.interrupted() ? "interrupted" : "the time was over";
        return true;
      }
      const auto& [task, launch] = open[i];
      const std::unique_ptr<EvaluationClaim> claim = timer.claim(launch, model);
      if (!claim) return false;
      auto timed = timer.time(launch, model);
      if (timed)
        task->set_code(std::move(*timed));
      else
        failures[i] = timed.error().message;
      ++done;
      return true;
    });
  pool.drain([&] {
    if (run.options.progress) run.options.progress("timing the machine code", done, open.size());
  });
  const auto failed = std::find_if(failures.begin(), failures.end(), [](const std::string& f) { return !f.empty(); });
  return failed == failures.end() ? "" : *failed;
}

void forget_code(const SearchRun& run, const std::vector<TimedTask*>& tasks) {
  std::vector<const Binary*> binaries;
  for (const TimedTask* t : tasks) binaries.push_back(&t->task().candidate.binary);
  run.context.timer->forget(binaries);
}

std::vector<const Task*> VariantTimes::winners() const {
  std::vector<const Task*> out;
  for (const StageTimes& s : stages)
    if (s.winner) out.push_back(&s.best().task());
  return out;
}

bool verify_together(const SearchRun& run, Runner& runner, VariantTimes& winners, Tally& tally) {
  return !verify_winners(run, winners, true, runner, tally) && !verify_grid(run, runner, winners, tally);
}

Result<Timings> time_on_gpu(const SearchRun& run, const SearchPlan& plan, const Trials& trials, Runner& runner) {
  return GpuTiming(run, plan, trials, runner).time();
}

Timings time_by_model(const SearchRun& run, const SearchPlan& plan, const Trials& trials, Runner& runner) {
  Timings out;
  for (const VariantReport& v : plan.reports) {
    VariantTimes times{v.name, {}, v.available, {}, std::nullopt};
    for (size_t s : plan.stages_of(v.name)) times.stages.push_back(verified_of(trials, s));
    out.variants.push_back(std::move(times));
  }
  if (run.options.best_only) leave_out_hopeless(run, out.variants);
  CodeTimes(run, plan, out).run();
  for (VariantTimes& v : out.variants) {
    for (StageTimes& s : v.stages) {
      s.winner = fastest_by_model(s);
      v.complete &= s.winner.has_value();
    }
  }
  if (run.options.best_only) {
    for (VariantTimes& v : out.variants)
      if (v.complete) v.verification = sum_of(verifications_of(v));
  } else {
    verify_by_model(run, trials, runner, out);
  }
  return out;
}

void note_times(const SearchRun& run, const SearchPlan& plan, const Timings& timings) {
  if (!run.context.store) return;
  for (const VariantTimes& variant : timings.variants)
    for (const StageTimes& stage : variant.stages)
      for (const TimedTask& t : stage.tasks)
        if (t.verified() && (t.report().measurement || t.report().code))
          run.context.store->note(stored_trial(run, plan, t.task(), t.report()));
}

}  // namespace roofgen
