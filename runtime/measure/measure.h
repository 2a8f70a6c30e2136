// The measurement protocol: times kernels against each other on one GPU so that the ranking is reproducible.
// docs/use/measurement.md gives the reasons for each rule.
//   screen    each contender once, alone, with a time-out: a fault or a hang costs only that contender
//   warm up   until the GPU has its clock under load (steady), or not at all (burst, quick)
//   rounds    A B C, B C A, ...: one sample each per round, cold and hot separately, until each contender
//             has settled, is clearly behind, or the time is up
//   final     the best few once more, in pairs against the leader; contenders not distinguishable from the leader
//             tie, and registers, shared memory and name break ties
// The protocol does not check results: verify kernels first and time only correct ones. The samples of the final decide
// the winner and are reported as ratios. They do not enter a contender's timing, because the earlier samples selected
// the finalists.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "runtime/executor.h"

namespace roofgen {

struct Protocol {
  /// Steady: the clock of a busy GPU. Burst: few samples, with rests. Quick: as few, without rests, where the times
  /// matter less than their wait, as for a check of results.
  enum class Mode { kSteady, kBurst, kQuick };
  Mode mode = Mode::kSteady;
  bool cold = true, hot = true;  ///< timed modes; cold times decide the ranking if available
  double warmup_s = 3;           ///< steady only
  double rest_s = 1;             ///< burst only: pause between the rounds of a contender
  uint64_t min_samples = 10;
  uint64_t max_samples = 300;  ///< burst, quick: at most 10
  double settled = 0.005;      ///< relative half width of the median's confidence interval
  double seconds_each = 2;     ///< per contender and mode
  double short_ns = 5000;      ///< if the fastest kernel is below this, all kernels below four times this value run as
                               ///< graphs of many repetitions
  size_t finalists = 5;
  uint64_t final_rounds = 40;  ///< burst, quick: at most 10
  double slow_clock = 0.75;    ///< samples below this fraction of the default clock are discarded
  uint64_t seed = 0;
};
const char* to_string(Protocol::Mode mode);                  ///< "steady", "burst", "quick"
Result<Protocol::Mode> parse_mode(const std::string& name);  ///< Exit::kUsage with the nearest name

/// A buffer of the timed problem. All contenders share it. Samples rotate over several copies, so that no sample finds
/// its data in L2 by accident. Without `fill`, a kernel writes the buffer.
struct BenchBuffer {
  std::string name;
  uint64_t bytes = 0;
  Fill fill = nullptr;
};

/// A candidate: one kernel, or the kernels of a variant in order. Buffer arguments are bound by name.
struct Contender {
  struct Kernel {
    const Binary* binary = nullptr;  ///< must outlive the measurement
    Launch launch;
  };
  std::string name;  ///< the schedule; must be unique
  std::vector<Kernel> kernels;
  int registers = 0;       ///< maximum over the kernels
  int64_t smem_bytes = 0;  ///< maximum over the kernels
  bool keep = false;       ///< timed to the end even when far behind (the default schedule)
};

/// The result of one contender; exactly one member is set.
struct Outcome {
  std::optional<Measurement> measurement;
  std::optional<Rejected>
      rejected;  ///< stage "gpu fault", "gpu timeout", "gpu memory", "gpu"; the caller fills in the schedule
};

/// A finalist compared with the winner, in pairs of the same round.
struct Pairing {
  size_t contender = 0;
  double ratio = 1, low = 1, high = 1;  ///< its time / the winner's time: median and 95 % interval
  bool tied = false;                    ///< the interval contains 1
};

struct Standings {
  std::vector<Outcome> outcomes;   ///< in the order of the contenders
  std::vector<size_t> order;       ///< measured contenders: the winner, the other finalists, the rest
  std::vector<Pairing> finalists;  ///< in ranking order, beginning with the winner
  std::vector<std::string> notes;  ///< remarks for the user: throttling, other processes, few buffers
  int buffer_sets = 1;
  bool lost = false;  ///< the GPU was lost; finished results are valid
  bool interrupted = false;
  std::string lost_because;
};

/// The protocol's clock; tests replace it.
struct BenchClock {
  std::function<double()> now_s;
  std::function<void(double)> sleep_s;
  static BenchClock real();
};

struct BenchHooks {
  std::function<void(const char* phase, uint64_t done, uint64_t total)> progress;
  std::function<void(const std::string&)> warn;
  const std::atomic<bool>* stop = nullptr;
  std::optional<double> deadline_s;  ///< on `clock`: nothing starts after it; results with enough samples remain valid
  BenchClock clock = BenchClock::real();
};

/// The data that the contenders work on.
struct Workload {
  std::vector<BenchBuffer> buffers;
  /// Kernels that run once on each set of buffers, in order, before any timing. They compute the temporaries that the
  /// contenders read.
  std::vector<Contender::Kernel> prepare;
};

/// Times the contenders against each other. An Error only when nothing could be timed at all: too little memory for one
/// set of buffers (with its size and the available memory), or a GPU lost at once.
Result<Standings> measure(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders,
                          const Protocol& protocol, const BenchHooks& hooks);

}  // namespace roofgen
