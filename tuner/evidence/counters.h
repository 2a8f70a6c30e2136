// Hardware counters: a tuned variant runs once under Nsight Compute (`ncu`), in its own process. The counted work is
// compared with the simulator's counts and with the formula of the required work. Counters are optional: without ncu,
// without permission or after a fault, one line says so and the run goes on. docs/use/counters.md.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "tuner/evidence/replay.h"
#include "tuner/model.h"
#include "tuner/tune.h"

namespace roofgen {

/// The counters of one kernel. Origin: counter. Absent: this GPU or this ncu has no such counter.
struct CountedWork {
  std::string stage, entry;
  std::optional<double> time_ns;  ///< under the profiler, caches flushed: not a measurement
  std::optional<double> dram_read_bytes, dram_write_bytes;
  std::optional<double> l2_bytes;          ///< all traffic at the L2 tags, between its partitions too
  std::optional<double> l2_request_bytes;  ///< requests of the SMs (sectors of source unit TEX x 32)
  std::optional<double> l1_bytes;
  std::optional<double> tensor_flops;
  std::optional<double> fp32_flops;          ///< CUDA cores: adds + multiplies + 2 x FMAs, active lanes
  std::optional<double> registers;           ///< per thread, as allocated
  std::optional<double> warps_active_pct;    ///< of the most an SM can hold, while it is active
  std::optional<double> spill_instructions;  ///< warp-level loads and stores of local memory
  std::optional<double> sm_cycles;
  bool tensor_flops_from_instructions =
      false;  ///< tensor instructions x FLOPs of each, if the GPU has no better counter
  std::optional<double> dram_bytes() const {
    if (!dram_read_bytes || !dram_write_bytes) return std::nullopt;
    return *dram_read_bytes + *dram_write_bytes;
  }
  /// Tensor FLOPs per DRAM byte.
  std::optional<double> arithmetic_intensity() const {
    if (!tensor_flops || !dram_bytes() || *dram_bytes() <= 0) return std::nullopt;
    return *tensor_flops / *dram_bytes();
  }
};

/// A kernel's work from other sources, to compare with the counters.
struct ExpectedWork {
  std::string stage;
  Work work;                    ///< by the simulator's counts, of the whole launch
  bool exact = true;            ///< every CTA of the reduced problem ran (else extrapolated from slices)
  double compulsory_bytes = 0;  ///< each tensor once
  int registers = 0;
};

/// One quantity of one kernel (or of the variant): counted against expected.
struct CountedDifference {
  std::string stage;     ///< "total" for the variant
  std::string quantity;  ///< "tensor FLOPs", "DRAM bytes", "L2 request bytes", "registers"
  std::string against;   ///< "simulated", "model", "formula", "compiled"
  double counted = 0, expected = 0;
  double relative = 0;  ///< counted / expected - 1
  bool flagged = false;
  std::string reason;  ///< of a flagged one: the difference and its likely cause
};

/// Relative difference of byte counts above which they are flagged.
inline constexpr double kCounterTolerance = 0.05;

struct CounterReport {
  std::string variant;
  std::string tool;     ///< "/usr/local/cuda/bin/ncu"
  std::string version;  ///< as ncu prints it
  std::string command;
  std::vector<CountedWork> kernels;
  std::vector<CountedDifference> differences;
  std::vector<std::string> notes;  ///< metrics that this GPU does not have, and the like
};

/// Counted against expected work. `required`: of the whole problem, by formula.
std::vector<CountedDifference> compare_counted(const std::vector<CountedWork>& counted,
                                               const std::vector<ExpectedWork>& expected,
                                               const std::optional<RequiredWork>& required);

struct CounterRequest {
  Replay replay;
  std::vector<ExpectedWork> expected;  ///< by kernel; may be empty
  std::optional<RequiredWork> required;
  int gpu = 0;
  std::string ncu;         ///< empty: $ROOFGEN_NCU, PATH, the toolkit, /opt/nvidia
  std::string executable;  ///< run as `<executable> __replay DIR`; empty: the running program
  double timeout_s = 180;  ///< of each run of ncu
  const std::atomic<bool>* stop = nullptr;
};

/// The request for a tuned variant, also for its sanitizer run.
Result<CounterRequest> counter_request(const DataFiles& files, const Op& op, const TuneResult& result,
                                       const std::string& variant);

/// Runs the variant under ncu. Errors, one line each: Exit::kUnavailable when ncu is missing, may not read the counters
/// or does not work with this driver; Exit::kFailed when its output is unusable.
Result<CounterReport> count_on_gpu(const CounterRequest& request);

/// Path of ncu, or kUnavailable with the places searched.
Result<std::string> find_ncu(const std::string& chosen);

// ---- The parts, for tests ------------------------------------------------------------------------

/// Names of the metrics to ask for. `known`: names (without suffix) that `ncu --query-metrics` lists; empty: unknown,
/// all are asked for.
std::vector<std::string> counter_metrics(const std::string& arch, DType dtype, const std::vector<std::string>& known);
/// Names in the output of `ncu --query-metrics`.
std::vector<std::string> parse_metric_names(const std::string& text);
/// Kernels in the output of `ncu --csv --page raw`, in launch order; other lines are ignored. `arch` and `dtype`
/// determine the FLOPs of a tensor instruction. Exit::kFailed when there is no table.
Result<std::vector<CountedWork>> parse_counters(const std::string& text, const std::string& arch, DType dtype);
/// A cell of ncu's tables in base units (bytes, ns, ...); nullopt for "n/a" and other text.
std::optional<double> parse_counter(const std::string& text, const std::string& unit);

}  // namespace roofgen
