#include "tuner/search/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tuner/search/kernel_timer.h"
#include "tuner/verify/verify.h"

namespace roofgen {
namespace {

const char* rejection_stage(Fault fault) {
  switch (fault) {
    case Fault::kKernel: return "gpu fault";
    case Fault::kTimeout: return "gpu timeout";
    case Fault::kMemory: return "gpu memory";
    default: return "run";
  }
}

std::vector<Candidate> candidates_of(const std::vector<const Task*>& chain) {
  std::vector<Candidate> out;
  for (const Task* t : chain) out.push_back(t->candidate);
  return out;
}

}  // namespace

Result<Verifier*> VerifierSet::of(const Variant& variant) {
  const std::lock_guard lock(mutex_);
  if (gpu_ && gpu_->generation() != generation_) {
    verifiers_.clear();
    inputs_.reset();
    generation_ = gpu_->generation();
  }
  std::unique_ptr<Verifier>& slot = verifiers_[&variant];
  if (!slot) {
    if (!inputs_) inputs_ = std::make_shared<SharedInputs>(*executor_);
    auto made = make_(variant, inputs_);
    for (const Candidate& c : feeders_[&variant]) ROOFGEN_CHECK(made->set_feeder(c));
    slot = std::move(made);
  }
  return slot.get();
}

void VerifierSet::clear() {
  const std::lock_guard lock(mutex_);
  verifiers_.clear();
  inputs_.reset();
  feeders_.clear();
}

Result<bool> VerifierSet::can_feed(const Variant& variant, size_t stage) {
  ROOFGEN_TRY(const Verifier* verifier, of(variant));
  return verifier->can_feed(stage);
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

Runner::Runner(const SearchRun& run, const SearchPlan& plan)
    : run_(run),
      plan_(plan),
      simulator_(
          [this](const Variant& v, std::shared_ptr<SharedInputs> inputs) {
            return verifier(v, run_.context.executor, std::move(inputs));
          },
          &run.context.executor, nullptr),
      gpu_([this](const Variant& v,
                  std::shared_ptr<SharedInputs> inputs) { return verifier(v, *run_.context.gpu, std::move(inputs)); },
           run.context.gpu, run.context.gpu) {
  for (const Variant& v : plan.variants) {
    plan_keys_[{&v, false}] = verifier(v, run.context.executor, nullptr)->plan().key();
    if (run.context.gpu) plan_keys_[{&v, true}] = verifier(v, *run.context.gpu, nullptr)->plan().key();
  }
}

std::unique_ptr<Verifier> Runner::verifier(const Variant& variant, Executor& executor,
                                           std::shared_ptr<SharedInputs> inputs) const {
  const TuneContext& c = run_.context;
  return std::make_unique<Verifier>(c.op, run_.problem, plan_.reduced_flops, c.device, variant, executor,
                                    std::move(inputs), sites());
}

void Runner::release_gpu() {
  const std::lock_guard lock(gpu_mutex_);
  gpu_.clear();
}

void Runner::lose_gpu(const Error& error) {
  gpu_lost_because_ = error.message;
  gpu_lost_ = true;
  if (run_.options.warn) run_.options.warn("the GPU is not used any more: " + error.message);
}

// ---- The store ---------------------------------------------------------------------------------

std::string executor_text(const SearchRun& run, Place where) {
  std::string out = fmt::format("{} evaluation {}", where == Place::kGpu ? "cuda" : run.context.executor.info().name,
                                kEvaluationVersion);
  if (where != Place::kSimulator) out += fmt::format(" and {} {} {}", run.gpu.name, run.gpu.uuid, run.gpu.driver);
  return out;
}

/// An evaluation depends on the binary, on what is run and checked and where, and on the numbers of the device that
/// search spaces and the L2 model read; not on its bandwidths or clocks.
StoreKey Runner::key_of(const Task& task, Place where) const {
  const Device& d = run_.context.device;
  const Candidate& c = task.candidate;
  std::string slice = fmt::format("{} {} {} {}", to_string(run_.problem), c.variant->name, c.stage().name,
                                  plan_keys_.at({c.variant, where == Place::kGpu}));
  slice += launch_text(task.launch) + " output=" + c.stage().output;
  if (const std::string definition = run_.context.op.definition(); !definition.empty()) slice += " op=" + definition;
  for (const auto& [name, dtype, bytes, role, zeroed] : plan_.temporaries.at(c.variant))
    slice += fmt::format(" {}={}{}{}", name, bytes, to_string(dtype), zeroed ? "z" : "");
  return {c.binary.digest, slice, executor_text(run_, where),
          fmt::format("{} l2={} wave={}", limits_text(d), d.integer("l2_bytes"), task.occupancy.ctas_per_sm)};
}

std::optional<Evaluation> Runner::recall(const StoreKey& key) const { return roofgen::recall(run_.context.store, key); }

std::unique_ptr<EvaluationClaim> Runner::claim(const StoreKey& key) const {
  return roofgen::claim(run_.context.store, key);
}

std::unique_ptr<EvaluationClaim> Runner::wait_for_claim(const StoreKey& key) const {
  std::unique_ptr<EvaluationClaim> out;
  while (!(out = claim(key)) && !run_.interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return out;
}

// ---- Running -----------------------------------------------------------------------------------

Result<Evaluation> Runner::evaluate(const Task& task) {
  const Place place = run_.place();
  Evaluation out;
  if (place != Place::kGpu) {
    ROOFGEN_TRY(out, run_in_simulator(task));
  }
  if (place == Place::kGpu || (place == Place::kBoth && out.verification.passed)) ROOFGEN_CHECK(run_on_gpu(task, out));
  // A fault may be the driver's, or the time-out too short.
  if (out.fault.empty()) remember(run_.context.store, task.key, out);
  return out;
}

Result<Evaluation> Runner::simulate(const Task& task) {
  ROOFGEN_TRY(Evaluation out, run_in_simulator(task));
  remember(run_.context.store, key_of(task, Place::kSimulator), out);
  return out;
}

Result<Evaluation> Runner::run_in_simulator(const Task& task) {
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

/// Adds the GPU's results to `out`. A kernel that faults or hangs has failed; an Error means that the GPU gave no
/// answer.
Result<void> Runner::run_on_gpu(const Task& task, Evaluation& out) {
  const std::lock_guard lock(gpu_mutex_);
  const bool alone = run_.place() == Place::kGpu;
  const auto no_answer = [&](const Error& error) -> Result<void> {
    if (alone) return error;
    return {};  // the simulator's evaluation stands
  };
  if (gpu_lost_) return no_answer({Exit::kFailed, "the GPU is gone: " + gpu_lost_because_});
  auto verifier = gpu_.of(*task.candidate.variant);
  auto real = verifier ? (*verifier)->evaluate(task.candidate, task.occupancy) : Result<Evaluation>(verifier.error());
  if (!real) {
    const Fault fault = run_.context.gpu->fault();
    if (fault == Fault::kLost) {
      lose_gpu(real.error());
      return no_answer(real.error());
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
    out.verification.passed = real->verification.passed;
    out.verification.failure = real->verification.failure;
    out.verification.add_checks(real->verification);
  }
  if (!out.verification.passed) out.verification.failure = "on the GPU: " + out.verification.failure;
  return {};
}

StoreKey Runner::key_of(const std::vector<const Task*>& chain, Place where) const {
  StoreKey key;
  for (const Task* t : chain) {
    StoreKey next = where == run_.place() ? t->key : key_of(*t, where);
    if (!key.binary.empty()) {
      next.binary = key.binary + "+" + next.binary;
      next.slice = key.slice + " + " + next.slice;
      next.simulator = key.simulator;
      next.device = key.device;
    }
    key = std::move(next);
  }
  return key;
}

std::vector<Verification> Runner::verify_chain(const std::vector<const Task*>& chain, std::vector<Verification> counted,
                                               bool stands) {
  const bool on_gpu = run_.place() == Place::kGpu && !gpu_lost_;
  StoreKey key = key_of(chain, run_.place());
  key.slice += " in a row, ";
  const auto key_of_kernel = [&](size_t i) {
    StoreKey out = key;
    out.slice += std::to_string(i);
    return out;
  };
  const std::unique_ptr<EvaluationClaim> claim = wait_for_claim(key);
  std::vector<Verification> out;
  for (size_t i = 0; i < chain.size(); ++i)
    if (auto known = recall(key_of_kernel(i))) out.push_back(std::move(known->verification));
  if (out.size() == chain.size()) return out;
  if (!on_gpu && stands) {
    for (Verification& v : counted)
      if (sites() == Sites::kCounted)
        v.not_run.push_back(
            fmt::format("other inputs not run: {}", run_.interrupted() ? "interrupted" : "the time was over"));
    return counted;
  }
  const std::lock_guard lock(gpu_mutex_);
  const bool once = sites() == Sites::kCounted && chain.size() == 1;
  auto verifier = (on_gpu ? gpu_ : simulator_).of(*chain[0]->candidate.variant);
  auto verified = verifier
                      ? (*verifier)->verify_chain(candidates_of(chain), Sites::kAll, once ? &counted.front() : nullptr)
                      : Result<std::vector<Verification>>(verifier.error());
  if (verified) {
    out = std::move(*verified);
    for (size_t i = 0; out.back().passed && i < out.size(); ++i) {
      Evaluation e;
      e.verification = out[i];
      remember(run_.context.store, key_of_kernel(i), e);
    }
  } else {
    out.assign(1, {});
    out[0].failure = verified.error().message;
    if (on_gpu && run_.context.gpu->fault() == Fault::kLost) lose_gpu(verified.error());
  }
  if (on_gpu) gpu_.clear();
  return out;
}

Verifier::Grid Runner::verify_grid(const std::vector<const Task*>& chain) {
  StoreKey key = key_of(chain, Place::kSimulator);
  key.slice += " grid";
  key.device.clear();  // no count is taken
  const std::unique_ptr<EvaluationClaim> claim = wait_for_claim(key);
  if (const auto known = recall(key)) return Verifier::Grid::from_stored(known->verification);
  const Variant& variant = *chain[0]->candidate.variant;
  const std::string phase = "whole grid of " + variant.name;
  const auto go_on = [&](uint64_t done, uint64_t total) {
    if (run_.options.progress) run_.options.progress(phase.c_str(), done, total);
    return !run_.interrupted();
  };
  auto verifier = simulator_.of(variant);
  auto grid =
      verifier ? (*verifier)->verify_grid(candidates_of(chain), go_on) : Result<Verifier::Grid>(verifier.error());
  // Too little memory, for example, is no fault of the kernels.
  if (!grid) return {{}, 0, grid.error().message};
  if (grid->verification.rows_checked > 0 && !grid->failed() && !run_.interrupted()) {
    Evaluation e;
    e.verification = grid->stored();
    remember(run_.context.store, key, e);
  }
  return std::move(*grid);
}

// ---- Feeders -----------------------------------------------------------------------------------

/// A stage whose outputs do not fit the GPU's memory costs the stages after it. Called with gpu_mutex_ held.
void Runner::fail_to_feed(const Variant& variant, size_t stage, const Error& error) {
  if (run_.context.gpu->fault() == Fault::kLost)
    lose_gpu(error);
  else
    unfed_[{&variant, stage}] = error.message;
}

const std::string* Runner::why_unfed(const Variant& variant, size_t stage) const {
  const auto it = unfed_.find({&variant, stage});
  return it == unfed_.end() ? nullptr : &it->second;
}

Result<bool> Runner::is_fed(const Variant& variant, size_t stage) {
  if (run_.place() != Place::kGpu) return simulator_.can_feed(variant, stage);
  const std::lock_guard lock(gpu_mutex_);
  if (gpu_lost_) return false;
  auto fed = gpu_.can_feed(variant, stage);
  if (fed) return fed;
  fail_to_feed(variant, stage - 1, fed.error());
  return false;
}

Result<bool> Runner::feed(const Candidate& candidate) {
  const Place place = run_.place();
  if (place != Place::kGpu) ROOFGEN_CHECK(simulator_.set_feeder(candidate));
  if (place == Place::kSimulator) return true;
  const std::lock_guard lock(gpu_mutex_);
  if (!gpu_lost_ && !why_unfed(*candidate.variant, candidate.stage_index)) {
    const auto fed = gpu_.set_feeder(candidate);
    if (fed) return true;
    fail_to_feed(*candidate.variant, candidate.stage_index, fed.error());
  }
  return place == Place::kBoth;  // the simulator is fed
}

}  // namespace roofgen
