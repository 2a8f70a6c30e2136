// The trials of a search: candidates are compiled, run and compared with the reference.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/search/timed_task.h"
#include "tuner/verify/verify.h"

namespace roofgen {

class Runner;

/// One candidate, with all that its trial gave.
struct Task {
  size_t point = 0;  ///< in the space of its stage
  Candidate candidate;
  Program program;
  Launch launch;  ///< of the real problem
  Occupancy occupancy;
  StoreKey key;  ///< of its evaluation where the run takes place; empty before it was compiled
  std::optional<Evaluation> evaluation;
  std::optional<Rejected> rejected;
  bool compiled = false, compiled_now = false;  ///< a binary was obtained; NVRTC ran in this call
  bool evaluated_now = false;                   ///< it ran in this call
  double compile_s = 0, check_s = 0;            ///< 0: from the cache or the store
  bool verified() const { return evaluation && evaluation->verification.passed; }
};

/// What one part of a search did. The report holds the sum.
struct Tally {
  std::vector<Rejected> rejections;
  uint64_t compiled = 0, compiled_now = 0;  ///< binaries obtained; NVRTC compilations
  uint64_t evaluated_now = 0;               ///< runs of a candidate
  /// Digests of binaries: passed on every CTA of the reduced problem; simulated on every CTA in this call, passed or
  /// not; passed on slices only.
  std::set<std::string> simulated, simulated_now, sliced;
  /// `now`: the evaluation ran in this call.
  void add_simulated(const Binary& binary, const Evaluation& evaluation, bool now);
  Tally& operator+=(const Tally& other);
};

struct Trials {
  std::vector<std::deque<Task>> stages;  ///< as the plan's stages; the default schedule first, then in the order tried
  std::map<const Task*, TimedTask> timed;  ///< the verified ones; without a GPU by the interval model
  Tally tally;
  std::vector<WarmStart> warm_starts;
  std::string ended;  ///< why, as in TuneReport
};

/// Tries candidates of every stage until each stage has its share of verified ones, the time is over, the GPU is lost,
/// or --until or --launches ends the search. An Error when nothing compiles, with the first compiler error.
Result<Trials> run_trials(const SearchRun& run, const SearchPlan& plan, Runner& runner);

/// The candidate and its outcome in words, without a time.
StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task);
/// The same of a verified candidate with the time of its report, which may be that of one launch on the GPU.
StoredTrial stored_trial(const SearchRun& run, const SearchPlan& plan, const Task& task, const KernelReport& report);

}  // namespace roofgen
