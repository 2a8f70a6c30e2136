// Runs candidates in the simulator, on the GPU or both, as the run's Check asks, and remembers the evaluations in the
// store. A kernel fault on the GPU costs only its candidate.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/trials.h"
#include "tuner/store/store.h"

namespace roofgen {

/// The verifiers of one executor, one per variant, with the feeders of their later stages. After a GPU worker was
/// replaced they are made anew.
class VerifierSet {
 public:
  using Make = std::function<std::unique_ptr<Verifier>(const Variant&, std::shared_ptr<SharedInputs>)>;
  /// `gpu`: `executor` where that is the GPU, which counts the generations of its worker.
  VerifierSet(Make make, Executor* executor, const GpuExecutor* gpu)
      : make_(std::move(make)), executor_(executor), gpu_(gpu) {}
  Result<Verifier*> of(const Variant& variant);
  Result<bool> can_feed(const Variant& variant, size_t stage);
  Result<void> set_feeder(const Candidate& candidate);
  /// Releases all inputs and feeders: they may take most of a GPU's memory.
  void clear();

 private:
  Make make_;
  Executor* executor_;
  const GpuExecutor* gpu_;
  uint64_t generation_ = 0;
  std::mutex mutex_;
  std::shared_ptr<SharedInputs> inputs_;
  std::map<const Variant*, std::unique_ptr<Verifier>> verifiers_;
  std::map<const Variant*, std::vector<Candidate>> feeders_;  ///< in the order they were set
};

/// Executor and version of its rules, as in the keys of the store.
std::string executor_text(const SearchRun& run, Place where);

class Runner {
 public:
  /// Both must outlive it.
  Runner(const SearchRun& run, const SearchPlan& plan);

  /// Equal for candidates whose evaluations are equal.
  StoreKey key_of(const Task& task, Place where) const;
  /// The evaluation in the store, if any.
  std::optional<Evaluation> recall(const StoreKey& key) const;
  /// nullptr: another process runs it now.
  std::unique_ptr<EvaluationClaim> claim(const StoreKey& key) const;
  /// Runs the candidate in the run's place and stores the evaluation, unless the GPU faulted. An Error: the candidate
  /// could not be run at all. Thread-safe.
  Result<Evaluation> evaluate(const Task& task);
  /// The same in the simulator alone.
  Result<Evaluation> simulate(const Task& task);
  /// Runs all stages of a variant one after another with all inputs, on the GPU where candidates run there alone. The
  /// verifications of the kernels, up to the first that failed. `counted`: of evaluate(). They stand where the store
  /// does not know the chain and `stands` says so.
  std::vector<Verification> verify_chain(const std::vector<const Task*>& chain, std::vector<Verification> counted,
                                         bool stands);
  /// Verifies all stages of a variant on the whole grid, in the simulator.
  Verifier::Grid verify_grid(const std::vector<const Task*>& chain);

  /// Whether the outputs of the stages before `stage` are there.
  Result<bool> is_fed(const Variant& variant, size_t stage);
  /// Makes a verified candidate the feeder of the stage after its own. False: that stage cannot be fed (why_unfed()).
  Result<bool> feed(const Candidate& candidate);
  Result<void> feed_simulator(const Candidate& candidate) { return simulator_.set_feeder(candidate); }
  /// Why the outputs of this stage could not be kept on the GPU; nullptr: no such failure.
  const std::string* why_unfed(const Variant& variant, size_t stage) const;

  /// Releases the verifiers' GPU memory, so that the measurement can have it.
  void release_gpu();
  bool gpu_lost() const { return gpu_lost_; }
  const std::string& gpu_lost_because() const { return gpu_lost_because_; }
  void lose_gpu(const Error& error);

 private:
  StoreKey key_of(const std::vector<const Task*>& chain, Place where) const;
  /// Waits until no other process runs it.
  std::unique_ptr<EvaluationClaim> wait_for_claim(const StoreKey& key) const;
  /// In the simulator, where a run takes long, a candidate runs with normal inputs, and only winners with all others.
  Sites sites() const { return run_.place() == Place::kSimulator ? Sites::kCounted : Sites::kAll; }
  std::unique_ptr<Verifier> verifier(const Variant& variant, Executor& executor,
                                     std::shared_ptr<SharedInputs> inputs) const;
  Result<Evaluation> run_in_simulator(const Task& task);
  Result<void> run_on_gpu(const Task& task, Evaluation& out);
  void fail_to_feed(const Variant& variant, size_t stage, const Error& error);

  const SearchRun& run_;
  const SearchPlan& plan_;
  VerifierSet simulator_, gpu_;
  std::map<std::pair<const Variant*, bool>, std::string> plan_keys_;  ///< of verification, by variant and "on the GPU"
  std::map<std::pair<const Variant*, size_t>, std::string> unfed_;
  std::mutex gpu_mutex_;  ///< one candidate at a time, so that a fault has one cause
  std::atomic<bool> gpu_lost_{false};
  std::string gpu_lost_because_;
};

}  // namespace roofgen
