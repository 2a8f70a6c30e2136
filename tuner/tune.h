// The tuner: a search is a pipeline of values, each stage a function of those before it (tuner/search/):
//   plan (legal points, predicted times) -> trials (compiled, verified, counted) -> timings (measured, or by the model;
//   winners) -> settled (variants with scores) -> verdict -> report
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "runtime/measure/measure.h"
#include "tuner/report.h"
#include "tuner/store/store.h"
#include "tuner/verify/verify.h"

namespace roofgen {

class KernelTimer;

/// How many candidates a search tries.
enum class Effort {
  kNone,   ///< of each stage the default schedule and the best of the closed-form prior
  kQuick,  ///< TuneOptions::evals
  kFull,   ///< ten times as many
};
const char* to_string(Effort effort);                  ///< "none", "quick", "full"
Result<Effort> parse_effort(const std::string& name);  ///< Exit::kUsage with the nearest

struct TuneOptions {
  std::map<std::string, ParamValue> pins;  ///< `--set`
  std::vector<std::string> variants;       ///< `--variant`; empty: all
  std::string strategy = "prior";
  uint64_t evals = 0;  ///< executed candidates over all stages; 0: the op's default, fewer for big problems
  Effort effort = Effort::kQuick;
  double until = 0;     ///< no new round once the best variant's score is at least this; 0: no limit
  double launches = 0;  ///< of the tuned kernel: the search ends when the rest would take longer than it can save
  std::vector<Schedule> first;  ///< tried after the defaults, of those that are points of a space
  bool cold = false;            ///< no candidates from the store's trials of other problems
  /// For a caller that chooses among kernels and checks its choice (docs/use/dispatch.md, docs/use/whatif.md): a
  /// variant that is far slower than another gets few candidates, and winners are checked neither in a row nor on the
  /// whole grid.
  bool best_only = false;
  bool settles = false;  ///< sooner than by default (SearchRun::settles): the search begins with good schedules
  std::set<std::string> siblings =
      {};                   ///< problems whose trials are no start either: the result does not depend on them
  double time_limit_s = 0;  ///< no new candidate starts after this; 0: no limit
  uint64_t seed = 0;
  int jobs = 0;                     ///< simulation threads; 0 = cores
  Check check = Check::kFinalists;  ///< GPU only
  Protocol protocol;                ///< GPU only
  /// GPU only: candidates timed in the same rounds. Each round runs all of them once, and interleaving cannot undo a
  /// drift of the clock within a round: rounds must be short.
  size_t batch = 48;
  const BenchClock* bench_clock = nullptr;  ///< GPU only, for tests: the protocol's time
  /// Called from the calling thread.
  std::function<void(const char* phase, uint64_t done, uint64_t total)> progress;
  std::function<void(const std::string&)> warn;
  const std::atomic<bool>* stop = nullptr;  ///< set by Ctrl-C; finished candidates are kept

  /// The same for a part of a larger search: the names of its phases begin with `place`, such as "part 2 of 5: ".
  TuneOptions in(const std::string& place) const;
};

inline constexpr uint64_t kDefaultGpuEvals = 192;  ///< of candidates that only run on a GPU

/// The resources of a run; the caller owns them.
struct TuneResources {
  const DataFiles& files;
  const Device& device;
  Compiler& compiler;
  Executor& executor;            ///< the simulator: checks and counts
  GpuExecutor* gpu = nullptr;    ///< a real GPU: candidates must pass on it, and it times them
  Evaluations* store = nullptr;  ///< nullptr: nothing is stored
  /// Times from machine code: without a GPU they decide, with one they order the measurements. nullptr: none.
  KernelTimer* timer = nullptr;
};

struct TuneContext : TuneResources {
  const Op& op;
};

struct TunedKernel {
  Program program;
  Binary binary;
  Launch launch;
  std::vector<LineRuns> lines = {};      ///< of the simulated run
  std::vector<Buffer> temporaries = {};  ///< of its variant
};

struct TuneResult {
  TuneReport report;
  std::map<std::string, std::vector<TunedKernel>> winners;  ///< by variant, in the order of its stages
  /// By variant and stage: the verified schedules, fastest first. The search of a similar kernel may begin with them.
  std::map<std::string, std::vector<std::vector<Schedule>>> rankings;
};

/// A search: the pipeline above as one function.
Result<TuneResult> tune(const TuneContext& context, const Problem& problem, const TuneOptions& options);

}  // namespace roofgen
