// What the ways to cut a chain of steps into kernels cost. One struct, from which text, JSON and page are made.
// docs/whatif.md says how each number comes about.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/report.h"

namespace roofgen {

/// A value that one kernel leaves in memory for another.
struct Intermediate {
  size_t after = 0;  ///< the step whose value it is
  double bytes = 0;
  double distance = 0;  ///< bytes that pass through the L2 between writing and reading one of its lines, at most
  bool in_l2 = false;   ///< they fit: neither its reading nor a later write-back is counted as DRAM traffic
};

/// One way to cut the chain. T = T_problem x waste x idle x stall, as for one kernel.
struct PartitionReport {
  std::string name;                   ///< the plan: "gemm+bias+gelu | residual+rmsnorm"
  std::vector<size_t> cuts;           ///< edge i is between steps i and i + 1
  std::string illegal;                ///< why it cannot be built; empty: it can
  std::string failed;                 ///< why it has no time: a part of which nothing was verified
  std::vector<KernelReport> kernels;  ///< their times and traffic as they are between their neighbours
  std::vector<Intermediate> intermediates;
  std::optional<Verification> together;  ///< of all kernels one after another; absent: each was verified alone
  double seconds = 0;                    ///< launches included
  double dram_bytes = 0, l2_bytes = 0;
  double flops = 0;  ///< MMA FLOPs; where the chain has none, operations of the FP32 pipe
  double waste = 0, idle = 0, stall = 0;
  bool timed() const { return illegal.empty() && failed.empty() && seconds > 0; }
  bool cut(size_t edge) const;
  double arithmetic_intensity() const { return dram_bytes > 0 ? flops / dram_bytes : 0; }
};

/// How much longer a partition takes than another, and how far that may be off: by the model's error band over the
/// kernels that the two do not have in common, or by the intervals of measured times.
struct TimeGap {
  double seconds = 0, error = 0;
  bool decided() const { return seconds > error || seconds < -error; }
};

/// The best partition on one side of an edge. Registers, occupancy, spills and CTAs are those of the kernels at the
/// edge: one if fused, two if cut.
struct EdgeSide : Side {
  std::string partition;
  double ctas = 0;                        ///< of the kernel with the fewest
  double waste = 0, idle = 0, stall = 0;  ///< of the whole partition
};

struct EdgeReport {
  size_t edge = 0;
  std::string before, after;  ///< the steps at its ends
  std::string decision;       ///< "fuse", "separate", "undecided", "fused only", "separate only", "none"
  std::optional<EdgeSide> fused, cut;
  TimeGap gain;  ///< what fusing saves; negative: costs
  double dram_saved = 0;
  std::optional<Intermediate> intermediate;  ///< what crosses the edge where it is cut
  std::string reason;                        ///< one sentence
  std::vector<Cause> causes;                 ///< the largest contribution first
  double speedup() const { return fused && cut && fused->seconds > 0 ? cut->seconds / fused->seconds : 0; }
};

struct WhatIfReport {
  Problem problem;
  std::string title;  ///< the chain as it was asked for
  std::vector<std::string> steps;
  Device device;
  std::string executor_device, arch, compiler;
  Origin times = Origin::kModel;
  bool matrix_flops = true;                 ///< what FLOPs are counted
  ProblemFloor floor;                       ///< of the whole chain, sustained
  std::vector<PartitionReport> partitions;  ///< those with a time first, the fastest first; then failed, then illegal
  std::vector<EdgeReport> edges;
  std::optional<std::string> forced;  ///< --plan
  std::string forced_verdict;         ///< one sentence: what the plan costs beside the best
  std::vector<std::string> notes;
  uint64_t parts = 0;  ///< distinct kernels that were searched
  uint64_t considered = 0, compiled = 0, compiled_now = 0, evaluated_now = 0;
  bool interrupted = false;
  double elapsed_s = 0;  ///< never part of the JSON
  const PartitionReport* best() const {
    return !partitions.empty() && partitions[0].timed() ? &partitions[0] : nullptr;
  }
  const PartitionReport* find(const std::string& name) const;
};

TimeGap time_gap(const WhatIfReport& report, const PartitionReport& slower, const PartitionReport& faster);

/// Sorts the partitions and draws the conclusions: a verdict for every edge, what the forced plan costs.
void conclude(WhatIfReport& report);

/// Has `verify` run whole every partition of several kernels that a verdict names. One that fails loses its time, and
/// the conclusions are drawn anew, until they name nothing that has not been run. Ends early when `go_on(done, named)`
/// says so.
Result<void> verify_named(WhatIfReport& report, const std::function<bool(size_t, size_t)>& go_on,
                          const std::function<Result<Verification>(const PartitionReport&)>& verify);

/// A what-if repeated with one size changed: who wins where.
struct Sweep {
  std::string dim;
  std::vector<WhatIfReport> runs;  ///< in ascending order of the size
  struct Crossover {
    std::string from, to;          ///< the winner below, the winner above
    int64_t below = 0, above = 0;  ///< neighbouring sizes of the sweep
    double at = 0;                 ///< where the lines of their times' ratio cross between them; 0: unknown
    bool decided = false;          ///< both ends are outside the error band
  };
  std::vector<Crossover> crossovers;
};
/// Finds where the winner changes.
Sweep make_sweep(std::string dim, std::vector<WhatIfReport> runs);

}  // namespace roofgen
