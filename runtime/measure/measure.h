// The measurement protocol: how kernels are timed against each other on one GPU so that the fastest
// is the fastest again tomorrow. docs/measurement.md says why each rule is there.
//
//   screen    each contender once, alone, with a time-out: a fault or a hang costs that one only
//   warm up   until the clock is that of a busy GPU (steady), or not at all (burst)
//   rounds    A B C, B C A, ...: one sample each a round, cold and hot apart, until each has settled,
//             is clearly behind, or the time is up
//   final     the best few once more, in pairs against the leader; who cannot be told from it ties,
//             and ties are broken by registers, shared memory, name
//
// Nothing here looks at what a kernel computes: verify before, and time only what passed. The samples of
// the final decide who won and are told as ratios; they are not mixed into a contender's timing, for the
// finalists were chosen by that.
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
  enum class Mode { kSteady, kBurst };
  Mode mode = Mode::kSteady;
  bool cold = true, hot = true;  ///< what is timed; the ranking is by cold where it is
  double warmup_s = 3;           ///< steady only
  double rest_s = 1;             ///< burst only: between a contender's rounds
  uint64_t min_samples = 10;
  uint64_t max_samples = 300;  ///< burst: at most 10
  double settled = 0.005;      ///< half width of the median's interval over the median
  double seconds_each = 2;     ///< per contender and way of timing
  double short_ns = 5000;      ///< fastest below this: shots of all below four times it are graphs of many repetitions
  size_t finalists = 5;
  uint64_t final_rounds = 40;  ///< burst: at most 10
  double slow_clock = 0.75;    ///< samples below this share of the default clock are discarded
  uint64_t seed = 0;
};
const char* to_string(Protocol::Mode mode);                  ///< "steady", "burst"
Result<Protocol::Mode> parse_mode(const std::string& name);  ///< Exit::kUsage with the nearest

/// A buffer of the timed problem. All contenders share it; several copies are rotated so that no
/// sample finds its data in L2 by accident. Without `fill` it is written by a kernel.
struct BenchBuffer {
  std::string name;
  uint64_t bytes = 0;
  Fill fill = nullptr;
};

/// One candidate: a kernel, or the kernels of a variant in order. Buffer arguments are bound by name.
struct Contender {
  struct Kernel {
    const Binary* binary = nullptr;  ///< outlives the measurement
    Launch launch;
  };
  std::string name;  ///< the schedule; must be unique
  std::vector<Kernel> kernels;
  int registers = 0;       ///< most of any kernel
  int64_t smem_bytes = 0;  ///< most of any kernel
  bool keep = false;       ///< timed to the end even when far behind (the default schedule)
};

/// What became of one contender. Exactly one of the two is there.
struct Outcome {
  std::optional<Measurement> measurement;
  std::optional<Rejected>
      rejected;  ///< stage "gpu fault", "gpu timeout", "gpu memory", "gpu"; schedule empty, the caller's to fill in
};

/// A finalist against the winner, in pairs of the same round.
struct Pairing {
  size_t contender = 0;
  double ratio = 1, low = 1, high = 1;  ///< its time over the winner's: median and 95 % interval
  bool tied = false;                    ///< 1 lies within the interval
};

struct Standings {
  std::vector<Outcome> outcomes;   ///< as the contenders
  std::vector<size_t> order;       ///< measured ones, the winner first, finalists before the others
  std::vector<Pairing> finalists;  ///< in order; the winner itself first
  std::vector<std::string> notes;  ///< what the reader should know: throttling, other processes, few buffers
  int buffer_sets = 1;
  bool lost = false;  ///< the GPU went away; what was finished stands
  bool interrupted = false;
  std::string lost_because;
};

/// Time as the protocol sees it, so that tests need none.
struct BenchClock {
  std::function<double()> now_s;
  std::function<void(double)> sleep_s;
  static BenchClock real();
};

struct BenchHooks {
  std::function<void(const char* phase, uint64_t done, uint64_t total)> progress;
  std::function<void(const std::string&)> warn;
  const std::atomic<bool>* stop = nullptr;
  std::optional<double> deadline_s;  ///< by `clock`: nothing is begun after it, and what has enough samples stands
  BenchClock clock = BenchClock::real();
};

/// What the contenders work on.
struct Workload {
  std::vector<BenchBuffer> buffers;
  /// Run once on each set of buffers, in order, before anything is timed: they make the temporaries that
  /// the contenders read.
  std::vector<Contender::Kernel> prepare;
};

/// Times the contenders against each other. An Error only where nothing could be timed at all: no
/// memory for one set of buffers (with its size and what would fit), GPU lost at once.
Result<Standings> measure(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders,
                          const Protocol& protocol, const BenchHooks& hooks);

}  // namespace roofgen
