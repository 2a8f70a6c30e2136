#include "tuner/search/trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tuner/verify/evaluation_json.h"

namespace roofgen {
namespace {

/// What a candidate that failed on the GPU is rejected as.
const char* rejection_stage(Fault fault) {
  switch (fault) {
    case Fault::kKernel: return "gpu fault";
    case Fault::kTimeout: return "gpu timeout";
    case Fault::kMemory: return "gpu memory";
    default: return "run";
  }
}

std::string launch_text(const Launch& launch) {
  std::string out = fmt::format(" grid={}x{}x{} block={} smem={}", launch.grid.x, launch.grid.y, launch.grid.z,
                                launch.block.count(), launch.smem_bytes);
  for (const GridAxis& a : launch.axes)
    out += fmt::format(" {}.{}={}/{}{}", a.name, a.dim, a.extent, a.step, a.reverse ? "r" : "");
  if (launch.cluster.count() > 1)
    out += fmt::format(" cluster={}x{}x{}", launch.cluster.x, launch.cluster.y, launch.cluster.z);
  if (launch.overlap) out += " overlap";
  for (const Arg& a : launch.args) {
    out += fmt::format(" {}:{}", a.name, a.bits);
    for (const std::byte b : a.data) out += fmt::format("{:02x}", static_cast<int>(b));
    if (a.map)
      out += fmt::format("map({} {} {} {} {} {} {})", to_string(a.map->dtype), fmt::join(a.map->dims, ","),
                         fmt::join(a.map->stride_bytes, ","), fmt::join(a.map->box, ","), a.map->swizzle_bytes,
                         a.map->nan_fill, a.map->l2_promotion_bytes);
  }
  return out;
}

/// Every CTA of the reduced problem ran.
bool whole(const Verification& v) { return v.ctas_run > 0 && v.ctas_run == v.ctas_total; }

}  // namespace

Result<Verifier*> VerifierSet::of(const Variant& variant) {
  const std::lock_guard lock(mutex_);
  if (gpu_ && gpu_->generation() != generation_) {
    verifiers_.clear();
    generation_ = gpu_->generation();
  }
  std::unique_ptr<Verifier>& slot = verifiers_[&variant];
  if (!slot) {
    auto made = make_(variant);
    for (const Candidate& c : feeders_[&variant]) ROOFGEN_CHECK(made->set_feeder(c));
    slot = std::move(made);
  }
  return slot.get();
}

void VerifierSet::clear() {
  const std::lock_guard lock(mutex_);
  verifiers_.clear();
  feeders_.clear();
}

Result<bool> VerifierSet::can_feed(const Variant& variant, size_t stage_index) {
  ROOFGEN_TRY(const Verifier* verifier, of(variant));
  return verifier->can_feed(stage_index);
}

Result<void> VerifierSet::set_feeder(const Candidate& candidate) {
  ROOFGEN_TRY(Verifier * verifier, of(*candidate.variant));
  ROOFGEN_CHECK(verifier->set_feeder(candidate));
  const std::lock_guard lock(mutex_);
  std::vector<Candidate>& feeders = feeders_[candidate.variant];
  std::erase_if(feeders, [&](const Candidate& c) { return c.stage_index == candidate.stage_index; });
  feeders.push_back(candidate);
  return {};
}

Trials::Trials(const TuneContext& context, const Problem& problem, const TuneOptions& options, SearchPlan& plan,
               TuneReport& report, std::function<bool()> stopped)
    : context_(context),
      problem_(problem),
      options_(options),
      plan_(plan),
      report_(report),
      stopped_(std::move(stopped)),
      simulator_(
          [this](const Variant& v) {
            return std::make_unique<Verifier>(context_.op, problem_, plan_.reduced_flops, context_.device, v,
                                              context_.executor);
          },
          nullptr),
      gpu_(
          [this](const Variant& v) {
            return std::make_unique<Verifier>(context_.op, problem_, plan_.reduced_flops, context_.device, v,
                                              *context_.gpu);
          },
          context.gpu),
      identity_(context.gpu ? context.gpu->identity() : GpuIdentity{}) {}

Trials::Place Trials::place() const {
  if (!context_.gpu) return Place::kSimulator;
  return options_.check == Check::kAll ? Place::kBoth : Place::kGpu;
}

void Trials::reject(Rejected r) {
  const std::lock_guard lock(mutex_);
  ++report_.rejected[r.stage];
  report_.rejections.push_back(std::move(r));
}

void Trials::free_gpu() {
  const std::lock_guard lock(gpu_mutex_);
  gpu_.clear();
}

void Trials::lose_gpu(const Error& error) {
  gpu_lost_because_ = error.message;
  gpu_lost_ = true;
  if (options_.warn) options_.warn("the GPU is not used any more: " + error.message);
}

/// Defaults first, because they feed the stages behind them; then all others; then replacements for what
/// spilled or failed.
Result<void> Trials::run() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  Pool pool(options_.jobs > 0 ? options_.jobs : static_cast<int>(cores));
  for (const StagePlan& p : plan_.stages) total_ += p.share;
  std::vector<Task*> held;  // later stages without a feeder yet
  for (bool defaults = true; !stopped_(); defaults = false) {
    std::vector<Task*> round;
    for (StagePlan& p : plan_.stages) {
      const size_t verified = p.verified();
      const size_t wanted = defaults ? 1 : verified < p.share ? p.share - verified : 0;
      ROOFGEN_CHECK(next_tasks(p, wanted, round));
    }
    if (round.empty()) break;
    ROOFGEN_CHECK(run_round(round, held, pool));
    if (gpu_lost_ && place() == Place::kGpu) break;
  }
  for (Task* t : held) {
    if (stopped_() || gpu_lost_) continue;
    const auto why = unfed_.find({t->candidate.variant, t->candidate.stage_index - 1});
    const std::string before = t->candidate.variant->stages[t->candidate.stage_index - 1].name;
    if (why != unfed_.end())
      reject({t->candidate.schedule, "gpu memory", fmt::format("{} cannot feed it: {}", before, why->second)});
    else
      reject({t->candidate.schedule, "feeder", fmt::format("no verified {} to feed it", before)});
  }
  return {};
}

/// Makes the next `count` tasks of a plan and appends them to `out`.
Result<void> Trials::next_tasks(StagePlan& plan, size_t count, std::vector<Task*>& out) {
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

Result<void> Trials::run_round(const std::vector<Task*>& tasks, std::vector<Task*>& held, Pool& pool) {
  std::vector<const Program*> programs;
  for (Task* t : tasks) programs.push_back(&t->program);
  std::optional<Error> failed;
  context_.compiler.compile_all(programs, [&](CompileOutcome outcome) {
    Task& task = *tasks[outcome.index];
    if (accept(task, std::move(outcome)) && !recall(task, place())) {
      auto fed = can_feed(task);
      if (!fed)
        failed = fed.error();
      else if (*fed)
        dispatch(task, pool);
      else
        held.push_back(&task);
    }
    tick();
    return !stopped_() && !failed;
  });
  pool.drain([&] { tick(); });
  if (failed) return *failed;
  // Later stages wait for a feeder: the first verified candidate of the stage before, default first.
  size_t last_stage = 0;
  for (const Task* t : held) last_stage = std::max(last_stage, t->candidate.stage_index);
  for (size_t stage = 1; stage <= last_stage && !stopped_(); ++stage) {
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
  return {};
}

Result<bool> Trials::can_feed(const Task& task) {
  const Variant& v = *task.candidate.variant;
  if (place() != Place::kGpu) return simulator_.can_feed(v, task.candidate.stage_index);
  const std::lock_guard lock(gpu_mutex_);
  if (gpu_lost_) return false;
  auto fed = gpu_.can_feed(v, task.candidate.stage_index);
  if (fed) return fed;
  unfed(v, task.candidate.stage_index - 1, fed.error());
  return false;
}

/// A stage whose results cannot be kept on the GPU costs the stages behind it. Called with gpu_mutex_ held.
void Trials::unfed(const Variant& variant, size_t stage, const Error& error) {
  if (context_.gpu->fault() == Fault::kLost)
    lose_gpu(error);
  else
    unfed_[{&variant, stage}] = error.message;
}

Result<bool> Trials::ensure_feeder(const Variant& v, size_t stage) {
  const auto fed_already = [&]() -> Result<bool> {
    if (place() != Place::kGpu) return simulator_.can_feed(v, stage + 1);
    const std::lock_guard lock(gpu_mutex_);
    if (gpu_lost_ || unfed_.count({&v, stage})) return false;
    auto fed = gpu_.can_feed(v, stage + 1);
    if (fed) return fed;
    unfed(v, stage, fed.error());
    return false;
  };
  ROOFGEN_TRY(const bool already, fed_already());
  if (already) return true;
  if (stage > 0) {
    ROOFGEN_TRY(const bool fed, ensure_feeder(v, stage - 1));
    if (!fed) return false;
  }
  for (StagePlan& plan : plan_.stages) {
    if (plan.variant != &v || plan.index != stage) continue;
    for (Task& t : plan.tasks) {
      if (!t.evaluation || !t.evaluation->verification.passed) continue;
      if (place() != Place::kGpu) ROOFGEN_CHECK(simulator_.set_feeder(t.candidate));
      if (place() == Place::kSimulator) return true;
      const std::lock_guard lock(gpu_mutex_);
      if (gpu_lost_ || unfed_.count({&v, stage})) return place() == Place::kBoth;
      if (auto fed = gpu_.set_feeder(t.candidate); !fed) {
        unfed(v, stage, fed.error());
        return place() == Place::kBoth;
      }
      return true;
    }
  }
  return false;
}

/// Takes a compile outcome; false when the candidate went no further.
bool Trials::accept(Task& task, CompileOutcome outcome) {
  ++finished_;
  if (!outcome.cached) {
    ++report_.compiled_now;
    task.compile_s = outcome.seconds;
  }
  if (!outcome.binary) {
    if (!first_compile_error_) first_compile_error_ = outcome.binary.error();
    reject({task.candidate.schedule, "compile", to_string(outcome.binary.error())});
    return false;
  }
  ++report_.compiled;
  Binary& b = task.candidate.binary = std::move(*outcome.binary);
  report_.arch = b.arch;
  // A spill is a fair prior and an unsafe filter: where candidates are timed, time decides.
  if (b.spill_bytes > 0 && place() != Place::kGpu) {
    reject({task.candidate.schedule, "spill",
            fmt::format("spill_bytes <= 0 ({} <= 0, at {} registers)", b.spill_bytes, b.registers)});
    return false;
  }
  task.occupancy = occupancy(context_.device, b.registers, b.static_smem_bytes + task.launch.smem_bytes,
                             static_cast<int>(task.launch.block.count()));
  if (task.occupancy.ctas_per_sm == 0) {
    reject({task.candidate.schedule, "occupancy",
            fmt::format("not one CTA fits an SM: {} registers x {} threads, {} bytes of shared memory", b.registers,
                        task.launch.block.count(), task.launch.smem_bytes)});
    return false;
  }
  return true;
}

/// A result depends on the binary, on what is run and checked and where, and on the few numbers of the
/// device that shape the L2 model; not on its bandwidths or clocks.
StoreKey Trials::key_of(const Task& task, Place where) {
  const Device& d = context_.device;
  // What is checked does not depend on the feeders, so that this verifier may be a fresh one.
  const Verifier verifier(context_.op, problem_, plan_.reduced_flops, d, *task.candidate.variant,
                          where == Place::kGpu ? static_cast<Executor&>(*context_.gpu) : context_.executor);
  std::string slice = fmt::format("{} {} {} {}", to_string(problem_), task.candidate.variant->name,
                                  task.candidate.stage().name, verifier.plan().key());
  slice += launch_text(task.launch) + " output=" + task.candidate.stage().output;
  if (auto temps = temporaries(*task.candidate.variant, plan_.scope))
    for (const Buffer& b : *temps) slice += fmt::format(" {}={}", b.name, b.bytes);
  std::string who = where == Place::kGpu ? "cuda" : context_.executor.info().name;
  who += fmt::format(" evaluation {}", kEvaluationVersion);
  if (where != Place::kSimulator) {
    who += fmt::format(" and {} {} {}", identity_.name, identity_.uuid, identity_.driver);
  }
  return {task.candidate.binary.digest, slice, who,
          fmt::format("sms={} l2={} wave={}", d.integer("sms"), d.integer("l2_bytes"), task.occupancy.ctas_per_sm)};
}

/// True when the store already knows this evaluation.
bool Trials::recall(Task& task, Place where) {
  if (!context_.store) return false;
  const std::lock_guard lock(mutex_);
  const auto payload = context_.store->lookup(key_of(task, where));
  if (payload) task.evaluation = from_payload(*payload);
  if (!task.evaluation) return false;
  ++finished_;
  conclude(task);
  return true;
}

void Trials::remember(const StoreKey& key, const Evaluation& evaluation) {
  if (context_.store) context_.store->put(key, to_payload(evaluation));
}

void Trials::dispatch(Task& task, Pool& pool) {
  const StoreKey key = key_of(task, place());
  pool.push([this, &task, key] {
    if (stopped_()) return;
    const auto begun = std::chrono::steady_clock::now();
    auto evaluated = evaluate(task);
    task.check_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    ++finished_;
    const std::lock_guard lock(mutex_);
    ++report_.evaluated_now;
    if (!evaluated) {
      if (gpu_lost_) return;  // not this candidate's doing
      ++report_.rejected["run"];
      report_.rejections.push_back({task.candidate.schedule, "run", to_string(evaluated.error())});
      return;
    }
    task.evaluation = std::move(*evaluated);
    const Verification& ran = task.evaluation->verification;
    if (place() != Place::kGpu && whole(ran)) simulated_now_.insert(task.candidate.binary.digest);
    if (!task.evaluation->fault.empty()) {
      // Another day, another driver, a longer time-out: not remembered.
      ++report_.rejected[task.evaluation->fault];
      report_.rejections.push_back({task.candidate.schedule, task.evaluation->fault, ran.failure});
      return;
    }
    remember(key, *task.evaluation);
    conclude(task);
  });
}

Result<Evaluation> Trials::evaluate(const Task& task) {
  Evaluation out;
  if (place() != Place::kGpu) {
    ROOFGEN_TRY(out, evaluate_in_simulator(task));
    if (place() == Place::kSimulator || !out.verification.passed) return out;
  }
  ROOFGEN_CHECK(evaluate_on_gpu(task, out));
  return out;
}

Result<Evaluation> Trials::evaluate_in_simulator(const Task& task) {
  ROOFGEN_TRY(Verifier * verifier, simulator_.of(*task.candidate.variant));
  ROOFGEN_TRY(Evaluation out, verifier->evaluate(task.candidate, task.occupancy));
  // Findings point into the generated source; a user opens the template.
  for (Finding& f : out.verification.findings) {
    const std::vector<Where>& lines = task.program.line_map.lines;
    if (f.source.line < 1 || static_cast<size_t>(f.source.line) > lines.size()) continue;
    f.source = lines[static_cast<size_t>(f.source.line) - 1];
    if (&f == &out.verification.findings.front())
      out.verification.failure += fmt::format(" at {}:{}", f.source.file, f.source.line);
  }
  return out;
}

/// Adds to `out` what the GPU says. A kernel that faults or hangs there has failed; an Error means that the
/// GPU could not say.
Result<void> Trials::evaluate_on_gpu(const Task& task, Evaluation& out) {
  const std::lock_guard lock(gpu_mutex_);
  const bool alone = place() == Place::kGpu;
  const auto gone = [&](const Error& error) -> Result<void> {
    if (alone) return error;
    return {};  // what the simulator found stands
  };
  if (gpu_lost_) return gone({Exit::kFailed, "the GPU is gone: " + gpu_lost_because_});
  auto verifier = gpu_.of(*task.candidate.variant);
  auto real = verifier ? (*verifier)->evaluate(task.candidate, task.occupancy) : Result<Evaluation>(verifier.error());
  if (!real) {
    const Fault fault = context_.gpu->fault();
    if (fault == Fault::kLost) {
      lose_gpu(real.error());
      return gone(real.error());
    }
    out.fault = rejection_stage(fault);
    out.verification.passed = false;
    out.verification.failure = to_string(real.error());
    return {};
  }
  if (alone) {
    out = std::move(*real);
  } else {
    out.measured_ns = real->measured_ns;
    out.verification.rows_checked += real->verification.rows_checked;
    out.verification.error_over_tolerance =
        std::max(out.verification.error_over_tolerance, real->verification.error_over_tolerance);
    out.verification.passed = real->verification.passed;
    out.verification.failure = real->verification.failure;
  }
  if (!out.verification.passed) out.verification.failure = "on the GPU: " + out.verification.failure;
  return {};
}

/// Called with mutex_ held.
void Trials::conclude(const Task& task) {
  const Verification& v = task.evaluation->verification;
  if (place() != Place::kGpu && whole(v)) simulated_.insert(task.candidate.binary.digest);
  if (v.passed) return;
  ++report_.rejected["verify"];
  report_.rejections.push_back({task.candidate.schedule, "verify", v.failure});
}

Result<bool> Trials::simulate(Task& task) {
  const Evaluation on_gpu = *task.evaluation;
  task.evaluation.reset();
  const StoreKey key = key_of(task, Place::kSimulator);
  if (context_.store)
    if (auto payload = context_.store->lookup(key)) task.evaluation = from_payload(*payload);
  if (!task.evaluation) {
    auto evaluated = evaluate_in_simulator(task);
    ++report_.evaluated_now;
    if (!evaluated) {
      task.evaluation = on_gpu;
      return std::move(evaluated).error();
    }
    task.evaluation = std::move(*evaluated);
    if (whole(task.evaluation->verification)) simulated_now_.insert(task.candidate.binary.digest);
    remember(key, *task.evaluation);
  }
  Verification& v = task.evaluation->verification;
  if (whole(v)) simulated_.insert(task.candidate.binary.digest);
  if (!v.passed) v.failure = "in the simulator, though it passed on the GPU: " + v.failure;
  task.evaluation->measured_ns = on_gpu.measured_ns;
  v.rows_checked += on_gpu.verification.rows_checked;
  v.error_over_tolerance = std::max(v.error_over_tolerance, on_gpu.verification.error_over_tolerance);
  const std::lock_guard lock(mutex_);
  conclude(task);
  return v.passed;
}

Result<void> Trials::feed_simulator(const Task& task) { return simulator_.set_feeder(task.candidate); }

/// Each winner was verified against the reference of the whole problem with the default stages before it.
/// The winners together are run once more, unless nothing else ran in this call (only device data changed)
/// or it was interrupted: then their own verifications stand.
Verification Trials::verify_chain(const std::vector<const Task*>& winners) {
  std::vector<Candidate> chain;
  for (const Task* t : winners) chain.push_back(t->candidate);
  const bool on_gpu = place() == Place::kGpu && !gpu_lost_;
  const Place where = on_gpu ? Place::kGpu : place();
  StoreKey key = key_of(*winners[0], where);
  for (size_t i = 1; i < winners.size(); ++i) {
    const StoreKey next = key_of(*winners[i], where);
    key.binary += "+" + next.binary;
    key.slice += " + " + next.slice;
  }
  if (context_.store)
    if (auto payload = context_.store->lookup(key))
      if (auto e = from_payload(*payload)) return e->verification;
  if (!on_gpu && (simulated_now_.empty() || stopped_())) {
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
  const std::lock_guard lock(gpu_mutex_);
  auto verifier = (on_gpu ? gpu_ : simulator_).of(*winners[0]->candidate.variant);
  auto verified = verifier ? (*verifier)->verify_chain(chain) : Result<Verification>(verifier.error());
  Evaluation e;
  if (verified) {
    e.verification = std::move(*verified);
    remember(key, e);
  } else {
    e.verification.failure = verified.error().message;
    if (on_gpu && context_.gpu->fault() == Fault::kLost) lose_gpu(verified.error());
  }
  if (on_gpu) gpu_.clear();
  return e.verification;
}

void Trials::tick() {
  if (!options_.progress) return;
  const uint64_t done = finished_;
  options_.progress("compiling and verifying", done, std::max(done, 2 * total_));
}

}  // namespace roofgen
