// Candidates on trial: compiled, run, compared with the reference, counted, remembered. Where they run
// (simulator, GPU, both) is the Check of the run; a fault on the GPU costs the candidate that made it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/pool.h"
#include "tuner/search/plan.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// The verifiers of one executor, one a variant, with what feeds their later stages. When a GPU's worker
/// was replaced they are made anew.
class VerifierSet {
 public:
  using Make = std::function<std::unique_ptr<Verifier>(const Variant&)>;
  /// `gpu`: the executor's own generation counter; nullptr for the simulator.
  VerifierSet(Make make, const GpuExecutor* gpu) : make_(std::move(make)), gpu_(gpu) {}
  Result<Verifier*> of(const Variant& variant);
  Result<bool> can_feed(const Variant& variant, size_t stage_index);
  Result<void> set_feeder(const Candidate& candidate);
  /// Lets go of everything: their inputs and feeders may take most of a GPU's memory.
  void clear();

 private:
  Make make_;
  const GpuExecutor* gpu_;
  uint64_t generation_ = 0;
  std::mutex mutex_;
  std::map<const Variant*, std::unique_ptr<Verifier>> verifiers_;
  std::map<const Variant*, std::vector<Candidate>> feeders_;  ///< in the order they were set
};

class Trials {
 public:
  /// All references must outlive it. Rejections and tallies go into `report`.
  Trials(const TuneContext& context, const Problem& problem, const TuneOptions& options, SearchPlan& plan,
         TuneReport& report, std::function<bool()> stopped);

  /// Tries candidates of every stage, the default first, until each has its share of verified ones.
  Result<void> run();
  /// Runs in the simulator a candidate that has only run on the GPU: its counts, and what the strict
  /// checks say. False when it fails there; it is then rejected.
  Result<bool> simulate(Task& task);
  /// Makes a simulated winner the feeder of the stage after it in the simulator.
  Result<void> feed_simulator(const Task& task);
  /// The winners of all stages of a variant, run one after another.
  Verification verify_chain(const std::vector<const Task*>& winners);

  /// After the trials: the GPU's memory is the measurement's.
  void free_gpu();
  void reject(Rejected rejected);
  bool gpu_lost() const { return gpu_lost_; }
  std::string gpu_lost_because() const { return gpu_lost_because_; }
  void lose_gpu(const Error& error);
  const std::optional<Error>& first_compile_error() const { return first_compile_error_; }
  /// Binaries that ran every CTA of the reduced problem in the simulator: in all, and in this run.
  size_t simulated() const { return simulated_.size(); }
  size_t simulated_now() const { return simulated_now_.size(); }

 private:
  enum class Place { kSimulator, kGpu, kBoth };
  Place place() const;
  Result<void> next_tasks(StagePlan& plan, size_t count, std::vector<Task*>& out);
  Result<void> run_round(const std::vector<Task*>& tasks, std::vector<Task*>& held, Pool& pool);
  Result<bool> can_feed(const Task& task);
  Result<bool> ensure_feeder(const Variant& variant, size_t stage);
  bool accept(Task& task, CompileOutcome outcome);
  StoreKey key_of(const Task& task, Place where);
  bool recall(Task& task, Place where);
  void remember(const StoreKey& key, const Evaluation& evaluation);
  void dispatch(Task& task, Pool& pool);
  Result<Evaluation> evaluate(const Task& task);
  Result<Evaluation> evaluate_in_simulator(const Task& task);
  Result<void> evaluate_on_gpu(const Task& task, Evaluation& out);
  void conclude(const Task& task);
  void unfed(const Variant& variant, size_t stage, const Error& error);
  void tick();

  const TuneContext& context_;
  const Problem& problem_;
  const TuneOptions& options_;
  SearchPlan& plan_;
  TuneReport& report_;
  std::function<bool()> stopped_;
  VerifierSet simulator_, gpu_;
  const GpuIdentity identity_;  ///< asked for once: a worker that is replaced says it again
  std::map<std::pair<const Variant*, size_t>, std::string> unfed_;  ///< why a stage could not be made a feeder
  std::mutex gpu_mutex_;  ///< one candidate at a time, so that a fault has one author
  std::atomic<bool> gpu_lost_{false};
  std::string gpu_lost_because_;
  std::optional<Error> first_compile_error_;
  std::set<std::string> simulated_, simulated_now_;
  std::atomic<uint64_t> finished_{0};
  uint64_t total_ = 0;
  std::mutex mutex_;
};

}  // namespace roofgen
