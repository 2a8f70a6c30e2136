// The result of a what-if: the partitions of a chain of steps into kernels, with their times. Text, JSON and page print
// this one struct. docs/use/whatif.md explains each number.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/report.h"

namespace roofgen {

/// A value that one kernel writes and another reads.
struct Intermediate {
  size_t after = 0;  ///< the step that computes it
  double bytes = 0;
  double distance = 0;    ///< most bytes of L2 traffic between the write and the read of one of its lines
  bool in_l2 = false;     ///< then neither its read nor a later write-back counts as DRAM traffic
  std::string name = {};  ///< of a value that no step computes: "parts" of split keys
};

/// One way to cut the chain. T = T_problem x waste x idle x stall, as for one kernel.
struct PartitionReport : TimeFactors {
  std::string name;                   ///< the plan: "gemm+bias+gelu | residual+rmsnorm"
  std::vector<size_t> cuts;           ///< edge i is between steps i and i + 1
  std::string illegal;                ///< why it cannot be built; empty: it can
  std::string failed;                 ///< why it has no time: no candidate of a part was verified
  std::vector<KernelReport> kernels;  ///< with their times and traffic in this partition
  std::string variant;                ///< of tune(), "split16", if that has all kernels of the partition
  bool splits = false;                ///< that variant splits the keys over CTAs
  std::vector<OtherVariant> untried;  ///< variants of tune() for its parts that have no time
  std::vector<Intermediate> intermediates;
  std::optional<Verification> together;  ///< of all kernels in a row; absent: each was verified alone
  bool on_whole_grid = false;            ///< `together` is of the real grid, too, as far as memory and time allow
  double seconds = 0;                    ///< launches included
  double dram_bytes = 0, l2_bytes = 0;
  double flops = 0;  ///< MMA FLOPs; where the chain has none, operations of the FP32 pipe
  bool timed() const { return illegal.empty() && failed.empty() && seconds > 0; }
  bool cut(size_t edge) const;
  double arithmetic_intensity() const { return dram_bytes > 0 ? flops / dram_bytes : 0; }
};

/// The difference of the times of two partitions and its error: the model's error band over the kernels that they do
/// not share, or the intervals of measured times.
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
  /// "fuse", "separate", "either" (hardly any time depends on it), "undecided", "fused only", "separate only", "none"
  std::string decision;
  std::optional<EdgeSide> fused, cut;
  TimeGap gain;  ///< time saved by fusing; negative: time lost
  double dram_saved = 0;
  double dependent_gain = 0;  ///< by which dependent launches shorten the cut side more than the fused one, in seconds
  std::optional<Intermediate> intermediate;  ///< the value that crosses the edge when it is cut
  std::string reason;                        ///< one sentence
  std::vector<Cause> causes;                 ///< the largest contribution first
  double speedup() const { return fused && cut && fused->seconds > 0 ? cut->seconds / fused->seconds : 0; }
};

/// All steps in one kernel, against the same steps with the keys split over CTAs and combined by a second kernel or by
/// the last CTAs. The best of the split<n> and merged<n> is compared.
struct SplitReport {
  std::string decision;  ///< "split", "whole", "undecided", "split only", "whole only"
  std::string variant;   ///< "split16"
  std::optional<EdgeSide> whole, split;
  TimeGap gain;                       ///< time saved by splitting; negative: time lost
  std::optional<Intermediate> parts;  ///< written by the first kernel and read by the second
  std::string reason;                 ///< one sentence
  std::vector<Cause> causes;          ///< the whole kernel is `fused`, the split ones are `separate`
  double speedup() const { return whole && split && split->seconds > 0 ? whole->seconds / split->seconds : 0; }
};

struct WhatIfReport {
  Problem problem;
  std::string title;  ///< the chain as it was asked for
  std::vector<std::string> steps;
  Device device;
  std::string executor_device, arch, compiler;
  Origin times = Origin::kModel;
  bool matrix_flops = true;                 ///< MMA FLOPs are counted, else operations of the FP32 pipe
  ProblemFloor floor;                       ///< of the whole chain, sustained
  std::vector<PartitionReport> partitions;  ///< those with a time first, the fastest first; then failed, then illegal
  std::vector<EdgeReport> edges;
  std::optional<SplitReport> split;   ///< absent: no partition splits the keys
  std::optional<std::string> forced;  ///< --plan
  std::string forced_verdict;         ///< one sentence: the plan against the best partition
  std::vector<std::string> notes;
  uint64_t parts = 0;  ///< distinct kernels that were searched
  uint64_t considered = 0, compiled = 0, compiled_now = 0, evaluated_now = 0;
  bool interrupted = false;
  const PartitionReport* best() const {
    return !partitions.empty() && partitions[0].timed() ? &partitions[0] : nullptr;
  }
  const PartitionReport* find(const std::string& name) const;
};

TimeGap time_gap(const WhatIfReport& report, const PartitionReport& slower, const PartitionReport& faster);

/// Sorts the partitions and concludes: a verdict for every edge, and one for the forced plan.
void conclude(WhatIfReport& report);

/// Calls `verify` for every partition that a verdict names; for the best and the forced one on the whole grid, too. A
/// partition that fails loses its time and the conclusions are drawn again, until all named partitions are verified.
/// Ends early when `go_on(done, named)` is false. Up to `threads` calls of `verify` run at a time.
Result<void> verify_named(
    WhatIfReport& report, int threads, const std::function<bool(size_t, size_t)>& go_on,
    const std::function<Result<Verification>(const PartitionReport&, bool on_whole_grid)>& verify);

/// A what-if repeated for several values of one size.
struct Sweep {
  std::string dim;
  std::vector<WhatIfReport> runs;  ///< in ascending order of the size
  struct Crossover {
    std::string from, to;          ///< the winners below and above
    int64_t below = 0, above = 0;  ///< neighbouring sizes of the sweep
    double at = 0;                 ///< interpolated size of equal times; 0: unknown
    bool decided = false;          ///< both ends are outside the error band
  };
  std::vector<Crossover> crossovers;
};
/// Finds where the winner changes.
Sweep make_sweep(std::string dim, std::vector<WhatIfReport> runs);

}  // namespace roofgen
