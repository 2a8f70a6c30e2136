#include "tuner/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "generator/suggest.h"
#include "tuner/evaluation_json.h"
#include "tuner/own_lint.h"
#include "tuner/pool.h"
#include "tuner/strategy.h"
#include "tuner/task.h"
#include "tuner/verdict.h"
#include "tuner/verify.h"
#include "roofline/units.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

using Clock = std::chrono::steady_clock;

/// Work limit that sets the default number of candidates of a big problem: about a minute of
/// simulation on two cores.
constexpr double kDefaultBudgetFlops = 2e12;
constexpr uint64_t kFewestEvals = 8;

/// Points in line for each one to be verified; the rest of the line stands by.
constexpr size_t kSpares = 3;

class Tuner {
 public:
  Tuner(const TuneContext& context, const Problem& problem, const TuneOptions& options)
      : context_(context), problem_(problem), options_(options), started_(Clock::now()), ranking_device_(ranking_device(context.device)) {}

  Result<TuneResult> run() {
    TuneReport& report = result_.report;
    report.problem = problem_;
    report.device = context_.device;
    report.simulated = context_.executor.origin() == Origin::kSimulated;
    report.executor_device = context_.gpu ? fmt::format("{}, simulated; candidates also ran on {}", context_.device.name, context_.gpu->info().device_name)
                                          : fmt::format("{}, simulated (no GPU is used)", context_.device.name);
    report.compiler = context_.compiler.description();
    report.strategy = options_.strategy;
    report.seed = options_.seed;
    ROOFGEN_TRY(strategy_, find_strategy(options_.strategy));
    ROOFGEN_TRY(scope_, problem_scope(context_.op, problem_, limits(context_.device)));
    ROOFGEN_TRY(variants_, load_variants(context_.files, problem_.op));
    ROOFGEN_TRY(formula_, WorkFormula::load(context_.files, problem_.op));
    ROOFGEN_TRY(required_, required_work(*formula_, problem_));
    ROOFGEN_TRY(const RequiredWork reduced, required_work(*formula_, context_.op.reduced(problem_)));
    reduced_flops_ = reduced.mma_flops;
    ROOFGEN_CHECK(choose_variants());
    ROOFGEN_CHECK(check_pins());
    for (const Variant& v : variants_) ROOFGEN_CHECK(plan_variant(v));
    if (plans_.empty()) return nothing_legal();
    ROOFGEN_CHECK(choose_points());
    ROOFGEN_CHECK(execute());
    assemble();
    if (report.compiled == 0 && first_compile_error_ && !stopped()) return *first_compile_error_;
    report.interrupted = options_.stop && options_.stop->load();
    report.elapsed_s = seconds_since_start();
    return std::move(result_);
  }

 private:
  double seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  bool stopped() const {
    return (options_.stop && options_.stop->load()) ||
           (options_.time_limit_s > 0 && seconds_since_start() > options_.time_limit_s);
  }
  void reject(Rejected r) {
    const std::lock_guard lock(mutex_);
    ++result_.report.rejected[r.stage];
    result_.report.rejections.push_back(std::move(r));
  }

  Result<void> choose_variants() {
    if (options_.variants.empty()) return {};
    std::vector<std::string> names;
    for (const Variant& v : variants_) names.push_back(v.name);
    for (const std::string& wanted : options_.variants)
      if (std::find(names.begin(), names.end(), wanted) == names.end())
        return Error{Exit::kUsage, fmt::format("unknown variant \"{}\"{}", wanted, did_you_mean(wanted, names))};
    std::erase_if(variants_, [&](const Variant& v) {
      return std::find(options_.variants.begin(), options_.variants.end(), v.name) == options_.variants.end();
    });
    return {};
  }

  /// A pin must name a parameter of some stage and have its type.
  Result<void> check_pins() const {
    std::vector<std::string> names;
    for (const Variant& v : variants_)
      for (const Stage& s : v.stages)
        for (const Param& p : s.params) names.push_back(p.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const auto& [name, value] : options_.pins) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        return Error{Exit::kUsage, fmt::format("--set {}: no such parameter{}", name, did_you_mean(name, names))};
      for (const Variant& v : variants_)
        for (const Stage& s : v.stages)
          for (const Param& p : s.params)
            if (p.name == name && p.values[0].index() != value.index())
              return Error{Exit::kUsage, fmt::format("--set {}={}: {} takes values like {}", name, to_string(value), name,
                                                     to_string(p.values[0]))};
            else if (const auto* text = std::get_if<std::string>(&value);
                     p.name == name && text && std::find(p.values.begin(), p.values.end(), value) == p.values.end()) {
              std::vector<std::string> known;
              for (const ParamValue& v2 : p.values) known.push_back(to_string(v2));
              return Error{Exit::kUsage, fmt::format("--set {}={}: no such value{}", name, *text, did_you_mean(*text, known))};
            }
    }
    return {};
  }

  Result<void> plan_variant(const Variant& v) {
    VariantReport report;
    report.name = v.name;
    report.description = v.description;
    const auto unavailable = [&](const char* stage, std::string reason) {
      reject({Schedule{v.name, "", {}}, stage, reason});
      report.available = false;
      report.rejected_because = std::move(reason);
      result_.report.variants.push_back(report);
    };
    ROOFGEN_TRY(std::vector<Buffer> temps, temporaries(v, scope_));
    double total = 0, temporary = 0;
    for (const Buffer& b : context_.op.buffers(problem_)) total += static_cast<double>(b.bytes);
    std::vector<std::string> names;
    for (const Buffer& b : temps) {
      temporary += static_cast<double>(b.bytes);
      names.push_back(b.name);
    }
    if (total + temporary > context_.device.at("memory_bytes")) {
      unavailable("memory", fmt::format("{} need {} of device memory, {} has {}", temporary > 0 ? fmt::format("its tensors with {}", fmt::join(names, " and ")) : "its tensors",
                                        bytes_text(total + temporary), context_.device.name,
                                        bytes_text(context_.device.at("memory_bytes"))));
      return {};
    }
    std::vector<StagePlan> plans;
    for (size_t i = 0; i < v.stages.size(); ++i) {
      StagePlan plan;
      plan.variant = &v;
      plan.index = i;
      ROOFGEN_CHECK(collect_legal(plan));
      if (plan.legal.empty()) {
        unavailable("constraint", fmt::format("every point of {} is illegal, the last because of {}", v.stages[i].name, last_reason_));
        return {};
      }
      plans.push_back(std::move(plan));
    }
    for (StagePlan& p : plans) plans_.push_back(std::move(p));
    result_.report.variants.push_back(std::move(report));
    return {};
  }

  Result<void> collect_legal(StagePlan& plan) {
    const Stage& stage = plan.variant->stages[plan.index];
    std::vector<Schedule> points = enumerate(*plan.variant, stage, options_.pins);
    result_.report.considered += points.size();
    ROOFGEN_TRY(const Schedule preset, default_schedule(*plan.variant, stage, scope_, options_.pins));
    bool preset_legal = false;
    for (Schedule& s : points) {
      const bool is_preset = s.params == preset.params;
      auto checked = check_schedule(*plan.variant, stage, std::move(s), scope_);
      if (auto error = std::get_if<Error>(&checked)) return *error;
      if (auto rejected = std::get_if<Rejected>(&checked)) {
        last_reason_ = rejected->reason;
        reject(std::move(*rejected));
        continue;
      }
      Legal& legal = std::get<Legal>(checked);
      auto predicted = prior(ranking_device_, stage, legal, problem_.dtype);
      if (!predicted) {
        // A launch that cannot be (a grid beyond the limits) makes the point illegal.
        last_reason_ = predicted.error().message;
        reject({legal.schedule, "launch", last_reason_});
        continue;
      }
      if (is_preset) {
        plan.preset = plan.legal.size();
        preset_legal = true;
      }
      plan.predicted.push_back(predicted->seconds);
      plan.legal.push_back(std::move(legal));
    }
    if (!preset_legal && !plan.legal.empty())
      plan.preset = static_cast<size_t>(std::min_element(plan.predicted.begin(), plan.predicted.end()) - plan.predicted.begin());
    return {};
  }

  Error nothing_legal() const {
    std::string reason = result_.report.variants.empty() ? "no variant" : result_.report.variants[0].rejected_because;
    Error error{Exit::kUnavailable, "no legal point: " + reason};
    for (size_t i = 1; i < result_.report.variants.size(); ++i)
      error.notes.push_back(fmt::format("  {}: {}", result_.report.variants[i].name, result_.report.variants[i].rejected_because));
    return error;
  }

  /// Splits the evaluations evenly over the variants, then over their stages; what a small space
  /// leaves over goes to the others.
  Result<void> choose_points() {
    uint64_t evals = options_.evals;
    if (evals == 0) {
      evals = std::clamp(static_cast<uint64_t>(kDefaultBudgetFlops / std::max(reduced_flops_, 1.0)), kFewestEvals, kDefaultEvals);
    }
    std::map<const Variant*, size_t> stages;
    for (const StagePlan& p : plans_) ++stages[p.variant];
    uint64_t given = plans_.size();
    // The stage whose share is furthest below its due gets the next one.
    while (given < evals) {
      StagePlan* neediest = nullptr;
      double lowest = 0;
      for (StagePlan& p : plans_) {
        if (p.share >= p.legal.size()) continue;
        const double filled = static_cast<double>(p.share) * static_cast<double>(stages[p.variant]);
        if (!neediest || filled < lowest) {
          neediest = &p;
          lowest = filled;
        }
      }
      if (!neediest) break;
      ++neediest->share;
      ++given;
    }
    for (StagePlan& p : plans_) {
      // A few points more than the share stand by for those that spill or fail.
      p.order = strategy_->select({p.predicted, p.preset, kSpares * p.share, options_.seed});
      if (options_.strategy == "exhaustive") p.share = p.order.size();
    }
    return {};
  }

  /// Makes the next `count` tasks of a plan and appends them to `out`.
  Result<void> next_tasks(StagePlan& plan, size_t count, std::vector<Task*>& out) {
    const Stage& stage = plan.variant->stages[plan.index];
    for (; count > 0 && plan.tasks.size() < plan.order.size(); --count) {
      const Legal& legal = plan.legal[plan.order[plan.tasks.size()]];
      Task task;
      task.candidate.variant = plan.variant;
      task.candidate.stage_index = plan.index;
      task.candidate.schedule = legal.schedule;
      ROOFGEN_TRY(task.program, generate(context_.files, stage, legal));
      ROOFGEN_TRY(task.launch, make_launch(stage, legal));
      plan.tasks.push_back(std::move(task));
      out.push_back(&plan.tasks.back());
    }
    return {};
  }

  /// The verifiers of a variant: on the simulator and, when there is one, on the GPU.
  struct Verifiers {
    std::unique_ptr<Verifier> sim, gpu;
  };
  Verifiers& verifiers(const Variant& v) {
    Verifiers& slot = verifiers_[&v];
    if (!slot.sim) slot.sim = std::make_unique<Verifier>(context_.op, problem_, reduced_flops_, context_.device, v, context_.executor);
    if (context_.gpu && !slot.gpu) slot.gpu = std::make_unique<Verifier>(context_.op, problem_, reduced_flops_, context_.device, v, *context_.gpu);
    return slot;
  }
  Verifier& verifier(const Variant& v) { return *verifiers(v).sim; }

  /// A GPU that cannot run a kernel at all (lost, out of memory, a fault) is left alone from then on;
  /// what the simulator found stays. Called with gpu_mutex_ held.
  void lose_gpu(const Error& error) {
    gpu_lost_ = true;
    if (options_.warn) options_.warn("the GPU is not used any more: " + error.message);
  }

  /// The simulator checks and counts; what passes there must pass on the GPU too, one at a time.
  Result<Evaluation> evaluate(Verifiers& on, const Task& task) {
    ROOFGEN_TRY(Evaluation out, on.sim->evaluate(task.candidate, task.occupancy));
    // Findings point into the generated source; a user opens the template.
    for (Finding& f : out.verification.findings) {
      const std::vector<Where>& lines = task.program.line_map.lines;
      if (f.source.line < 1 || static_cast<size_t>(f.source.line) > lines.size()) continue;
      f.source = lines[static_cast<size_t>(f.source.line) - 1];
      if (&f == &out.verification.findings.front())
        out.verification.failure += fmt::format(" at {}:{}", f.source.file, f.source.line);
    }
    if (!on.gpu || !out.verification.passed) return out;
    const std::lock_guard lock(gpu_mutex_);
    if (gpu_lost_) return out;
    auto on_gpu = on.gpu->evaluate(task.candidate, task.occupancy);
    if (!on_gpu) {
      lose_gpu(on_gpu.error());
      return out;
    }
    const Evaluation& real = *on_gpu;
    out.measured_ns = real.measured_ns;
    out.verification.rows_checked += real.verification.rows_checked;
    out.verification.error_over_tolerance = std::max(out.verification.error_over_tolerance, real.verification.error_over_tolerance);
    if (!real.verification.passed) {
      out.verification.passed = false;
      out.verification.failure = "on the GPU: " + real.verification.failure;
    }
    return out;
  }

  /// Defaults first, because they feed the stages behind them; then all others; then replacements
  /// for what spilled or failed.
  Result<void> execute() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    Pool pool(options_.jobs > 0 ? options_.jobs : static_cast<int>(cores));
    for (const StagePlan& p : plans_) total_ += p.share;
    std::vector<Task*> held;  // later stages without a feeder yet
    for (bool defaults = true; !stopped(); defaults = false) {
      std::vector<Task*> round;
      for (StagePlan& p : plans_) {
        const size_t verified = p.verified();
        const size_t wanted = defaults ? 1 : verified < p.share ? p.share - verified : 0;
        ROOFGEN_CHECK(next_tasks(p, wanted, round));
      }
      if (round.empty()) break;
      ROOFGEN_CHECK(execute_round(round, held, pool));
    }
    for (Task* t : held)
      if (!stopped())
        reject({t->candidate.schedule, "feeder", fmt::format("no verified {} to feed it", t->candidate.variant->stages[t->candidate.stage_index - 1].name)});
    return {};
  }

  Result<void> execute_round(const std::vector<Task*>& tasks, std::vector<Task*>& held, Pool& pool) {
    std::vector<const Program*> programs;
    for (Task* t : tasks) programs.push_back(&t->program);
    context_.compiler.compile_all(programs, [&](CompileOutcome outcome) {
      Task& task = *tasks[outcome.index];
      if (accept(task, std::move(outcome)) && !recall(task)) {
        if (verifier(*task.candidate.variant).can_feed(task.candidate.stage_index)) dispatch(task, pool);
        else held.push_back(&task);
      }
      tick();
      return !stopped();
    });
    pool.drain([&] { tick(); });
    // Later stages wait for a feeder: the first verified candidate of the stage before, default first.
    size_t last_stage = 0;
    for (const Task* t : held) last_stage = std::max(last_stage, t->candidate.stage_index);
    for (size_t stage = 1; stage <= last_stage && !stopped(); ++stage) {
      std::vector<Task*> waiting;
      for (Task* t : held) {
        bool fed = false;
        if (t->candidate.stage_index == stage) {
          ROOFGEN_TRY(fed, ensure_feeder(*t->candidate.variant, stage - 1));
        }
        if (fed) dispatch(*t, pool);
        else waiting.push_back(t);
      }
      held = std::move(waiting);
      pool.drain([&] { tick(); });
    }
    return {};
  }

  Result<bool> ensure_feeder(const Variant& v, size_t stage) {
    Verifier& ver = verifier(v);
    if (ver.can_feed(stage + 1)) return true;
    if (stage > 0) {
      ROOFGEN_TRY(const bool fed, ensure_feeder(v, stage - 1));
      if (!fed) return false;
    }
    for (StagePlan& plan : plans_)
      if (plan.variant == &v && plan.index == stage)
        for (Task& t : plan.tasks)
          if (t.evaluation && t.evaluation->verification.passed) {
            ROOFGEN_CHECK(ver.set_feeder(t.candidate));
            if (const std::lock_guard lock(gpu_mutex_); context_.gpu && !gpu_lost_)
              if (auto fed = verifiers(v).gpu->set_feeder(t.candidate); !fed) lose_gpu(fed.error());
            return true;
          }
    return false;
  }

  /// Takes a compile outcome; false when the candidate went no further.
  bool accept(Task& task, CompileOutcome outcome) {
    ++finished_;
    if (!outcome.cached) ++result_.report.compiled_now;
    if (!outcome.binary) {
      if (!first_compile_error_) first_compile_error_ = outcome.binary.error();
      reject({task.candidate.schedule, "compile", to_string(outcome.binary.error())});
      return false;
    }
    ++result_.report.compiled;
    Binary& b = task.candidate.binary = std::move(*outcome.binary);
    result_.report.arch = b.arch;
    if (b.spill_bytes > 0) {
      reject({task.candidate.schedule, "spill", fmt::format("spill_bytes <= 0 ({} <= 0, at {} registers)", b.spill_bytes, b.registers)});
      return false;
    }
    task.occupancy = occupancy(context_.device, b.registers, b.static_smem_bytes + task.launch.smem_bytes, static_cast<int>(task.launch.block.count()));
    if (task.occupancy.ctas_per_sm == 0) {
      reject({task.candidate.schedule, "occupancy", fmt::format("not one CTA fits an SM: {} registers x {} threads, {} bytes of shared memory",
                                                                b.registers, task.launch.block.count(), task.launch.smem_bytes)});
      return false;
    }
    return true;
  }

  static std::string launch_text(const Launch& launch) {
    std::string out = fmt::format(" grid={}x{}x{} block={} smem={}", launch.grid.x, launch.grid.y, launch.grid.z, launch.block.count(), launch.smem_bytes);
    for (const GridAxis& a : launch.axes) out += fmt::format(" {}.{}={}/{}{}", a.name, a.dim, a.extent, a.step, a.reverse ? "r" : "");
    for (const Arg& a : launch.args) out += fmt::format(" {}:{}", a.name, a.bits);
    return out;
  }

  /// A result depends on the binary, on what is run and checked, and on the few numbers of the
  /// device that shape the L2 model; not on its bandwidths or clocks.
  StoreKey key_of(const Task& task) {
    const Device& d = context_.device;
    std::string slice = fmt::format("{} {} {} {} {}", problem_.op, to_string(problem_.dtype), task.candidate.variant->name,
                                    task.candidate.stage().name, verifier(*task.candidate.variant).plan().key());
    for (const auto& [name, v] : problem_.dims) slice += fmt::format(" {}={}", name, v);
    for (const auto& [name, v] : problem_.flags) slice += fmt::format(" {}={}", name, v);
    for (const auto& [name, v] : problem_.reals) slice += fmt::format(" {}={}", name, v);
    slice += launch_text(task.launch) + " output=" + task.candidate.stage().output;
    if (auto temps = temporaries(*task.candidate.variant, scope_))
      for (const Buffer& b : *temps) slice += fmt::format(" {}={}", b.name, b.bytes);
    return {task.candidate.binary.digest, slice,
            fmt::format("{} evaluation {}{}", context_.executor.info().name, kEvaluationVersion,
                        context_.gpu ? " and " + context_.gpu->info().device_name : ""),
            fmt::format("sms={} l2={} wave={}", d.integer("sms"), d.integer("l2_bytes"), task.occupancy.ctas_per_sm)};
  }

  /// True when the store already knows this evaluation.
  bool recall(Task& task) {
    if (!context_.store) return false;
    const std::lock_guard lock(mutex_);
    const auto payload = context_.store->lookup(key_of(task));
    if (payload) task.evaluation = from_payload(*payload);
    if (!task.evaluation) return false;
    ++finished_;
    conclude(task);
    return true;
  }

  void dispatch(Task& task, Pool& pool) {
    Verifiers& on = verifiers(*task.candidate.variant);
    const StoreKey key = key_of(task);
    pool.push([this, &task, &on, key] {
      if (stopped()) return;
      auto evaluated = evaluate(on, task);
      const std::lock_guard lock(mutex_);
      ++finished_;
      if (!evaluated) {
        ++result_.report.rejected["run"];
        result_.report.rejections.push_back({task.candidate.schedule, "run", to_string(evaluated.error())});
        return;
      }
      task.evaluation = std::move(*evaluated);
      const Verification& ran = task.evaluation->verification;
      if (ran.ctas_run > 0 && ran.ctas_run == ran.ctas_total) simulated_now_.insert(task.candidate.binary.digest);
      if (context_.store) context_.store->put(key, to_payload(*task.evaluation));
      conclude(task);
    });
  }

  /// Called with mutex_ held.
  void conclude(Task& task) {
    const Verification& v = task.evaluation->verification;
    if (v.ctas_run > 0 && v.ctas_run == v.ctas_total) simulated_.insert(task.candidate.binary.digest);
    if (v.passed) return;
    ++result_.report.rejected["verify"];
    result_.report.rejections.push_back({task.candidate.schedule, "verify", v.failure});
  }

  void tick() {
    if (!options_.progress) return;
    const uint64_t done = finished_;
    options_.progress("compiling and verifying", done, std::max(done, 2 * total_));
  }

  void assemble() {
    TuneReport& report = result_.report;
    report.floor_sustained = problem_floor(context_.device, required_, problem_.dtype, RoofSet::kSustained);
    report.floor_datasheet = problem_floor(context_.device, required_, problem_.dtype, RoofSet::kDatasheet);
    report.simulated_binaries = simulated_.size();
    report.simulated_now = simulated_now_.size();
    for (VariantReport& v : report.variants)
      if (v.available) assemble_variant(v);
    std::sort(report.rejections.begin(), report.rejections.end(), [](const Rejected& a, const Rejected& b) {
      return std::tuple(a.stage, to_string(a.schedule)) < std::tuple(b.stage, to_string(b.schedule));
    });
    const VariantReport* best = nullptr;
    for (const VariantReport& v : report.variants)
      if (v.verified && (!best || v.seconds < best->seconds)) best = &v;
    if (best) {
      report.best_variant = best->name;
      report.score = report.floor_sustained.seconds / best->seconds;
      report.score_datasheet = report.floor_datasheet.seconds / best->seconds;
    }
    report.verdict = fusion_verdict(report.variants, kModelErrorBand);
    report.warnings = own_warnings(*formula_, report);
  }

  void assemble_variant(VariantReport& v) {
    std::vector<const Task*> winners;
    const ReportContext to_report{context_.device, problem_.dtype, scope_, result_.report.floor_sustained.seconds};
    for (const StagePlan& plan : plans_) {
      if (plan.variant->name != v.name) continue;
      const Task* best = winner(to_report, plan);
      if (!best) return;  // verified stays false
      winners.push_back(best);
    }
    std::vector<Candidate> chain;
    for (const Task* t : winners) {
      KernelReport k = kernel_report(to_report, *t);
      v.seconds += k.time.seconds;
      v.dram_bytes += k.work.dram_bytes;
      v.l2_bytes += k.work.l2_bytes;
      v.flops += k.flops;
      chain.push_back(t->candidate);
      result_.programs[v.name].push_back(t->program);
      result_.binaries[v.name].push_back(t->candidate.binary);
      result_.launches[v.name].push_back(t->launch);
      v.kernels.push_back(std::move(k));
    }
    v.verification = winners.size() == 1 ? winners[0]->evaluation->verification : chain_verification(winners, chain);
    v.verified = v.verification.passed;
    if (!v.verified) reject({Schedule{v.name, "", {}}, "verify", "the winners together: " + v.verification.failure});
  }

  /// Each winner was verified against the reference of the whole problem with the default stages
  /// before it. The winners together are run once more, unless nothing else ran in this call (only
  /// device data changed) or it was interrupted: then their own verifications stand.
  Verification chain_verification(const std::vector<const Task*>& winners, const std::vector<Candidate>& chain) {
    StoreKey key = key_of(*winners[0]);
    for (size_t i = 1; i < winners.size(); ++i) {
      const StoreKey next = key_of(*winners[i]);
      key.binary += "+" + next.binary;
      key.slice += " + " + next.slice;
    }
    if (context_.store)
      if (auto payload = context_.store->lookup(key))
        if (auto e = from_payload(*payload)) return e->verification;
    if (simulated_now_.empty() || stopped()) {
      Verification all;
      all.passed = true;
      for (const Task* t : winners) {
        const Verification& v = t->evaluation->verification;
        all.ctas_run += v.ctas_run;
        all.ctas_total += v.ctas_total;
        all.rows_checked += v.rows_checked;
        all.error_over_tolerance = std::max(all.error_over_tolerance, v.error_over_tolerance);
      }
      return all;
    }
    auto verified = verifier(*winners[0]->candidate.variant).verify_chain(chain);
    Evaluation e;
    if (verified) e.verification = std::move(*verified);
    else e.verification.failure = verified.error().message;
    if (context_.store && verified) context_.store->put(key, to_payload(e));
    return e.verification;
  }

  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  Clock::time_point started_;
  Device ranking_device_;
  const Strategy* strategy_ = nullptr;
  expr::Map scope_;
  std::vector<Variant> variants_;
  std::deque<StagePlan> plans_;
  std::optional<WorkFormula> formula_;
  RequiredWork required_;
  double reduced_flops_ = 0;  ///< required MMA FLOPs of the reduced problem
  std::map<const Variant*, Verifiers> verifiers_;
  std::mutex gpu_mutex_;  ///< guards the GPU and gpu_lost_
  bool gpu_lost_ = false;
  std::string last_reason_;
  std::optional<Error> first_compile_error_;
  std::set<std::string> simulated_, simulated_now_;
  std::atomic<uint64_t> finished_{0};
  uint64_t total_ = 0;
  std::mutex mutex_;
  TuneResult result_;
};

}  // namespace

Result<TuneResult> tune(const TuneContext& context, const Problem& problem, const TuneOptions& options) {
  return Tuner(context, problem, options).run();
}

}  // namespace roofgen
