// The result of a tuning run. Every view (text, JSON, explain) prints this one struct.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generator/ops/op_file.h"
#include "roofgen/pipeline.h"
#include "roofline/device.h"
#include "roofline/lint/lint.h"
#include "runtime/measure/measure.h"
#include "tuner/code_time.h"

namespace roofgen {

/// With a GPU: where a candidate must pass. Without a GPU all run in the simulator.
enum class Check {
  kAll,        ///< every candidate in the simulator, then on the GPU
  kFinalists,  ///< every candidate on the GPU; the winners also in the simulator
  kGpu,        ///< on the GPU alone: nothing is counted
};
const char* to_string(Check check);                  ///< "all", "finalists", "gpu"
Result<Check> parse_check(const std::string& name);  ///< Exit::kUsage with the nearest

/// The timing that ranks a measurement: cold if there is one, else hot.
const Timing* ranking_timing(const Measurement& measurement);

/// One of the best candidates of a stage, timed again in pairs with the winner. Origin: measured.
struct Finalist {
  Schedule schedule;
  double median_ns = 0;
  double ratio = 1, low = 1, high = 1;  ///< its time over the winner's, with the 95 % interval
  bool tied = false;                    ///< the interval contains 1
};

/// One tuned kernel of a variant.
struct KernelReport : TimeFactors {
  Schedule schedule;
  std::string stage;
  std::string digest;
  int registers = 0;
  int64_t spill_bytes = 0, smem_bytes = 0;
  int threads = 0;
  std::vector<std::string> advisories;
  Occupancy occupancy;
  Work work;                    ///< of the whole launch
  bool work_exact = true;       ///< scaled from every CTA of the reduced problem, not from slices
  Counts counts;                ///< of the CTAs that were counted
  double exps = 0;              ///< ex2 executed by active lanes
  double compulsory_bytes = 0;  ///< sizes of the buffers it touches (of temporaries the allowed part)
  double flops = 0;             ///< MMA FLOPs executed, masked parts of diagonal tiles included
  /// FLOPs / DRAM bytes. Where there is no matrix work, operations of the FP32 pipe count, as in work formulas.
  double arithmetic_intensity = 0;
  KernelTime time;
  std::optional<CodeTime> code;     ///< absent: the time is of the closed form
  bool intermediate_in_l2 = false;  ///< a temporary it touches stays in L2: judged against the L2 roof
  Verification verification;
  double seconds = 0;                      ///< T: measured in a measured run, else the model's
  bool counted = true;                     ///< false: it ran only on the GPU, which counts nothing
  std::optional<Measurement> measurement;  ///< measured runs only, as are the next two
  std::optional<Measurement> preset;       ///< of the default schedule, timed beside it
  std::vector<Finalist> finalists;
};

/// Sets the times and factors of a kernel by its work, its machine code and its measurement. `floor_seconds`:
/// T_problem.
void estimate_time(KernelReport& kernel, const Device& device, double floor_seconds);

struct VariantReport : VariantInfo {
  bool available = true;  ///< false: rejected as a whole
  std::string rejected_because;
  bool verified = false;                                                             ///< passed all checks that ran
  Verification verification;                                                         ///< of the chain of winners
  bool wholly_verified() const { return verified && verification.not_run.empty(); }  ///< all checks that apply ran
  std::vector<KernelReport> kernels;
  double seconds = 0;                      ///< all kernels in order: measured as one, else the sum of the model's times
  std::optional<Measurement> measurement;  ///< measured runs only
  double dram_bytes = 0, l2_bytes = 0, flops = 0;
  double arithmetic_intensity() const {
    double operations = flops;
    if (flops == 0)
      for (const KernelReport& k : kernels) operations += k.work.fp32_ops;
    return dram_bytes > 0 ? operations / dram_bytes : 0;
  }
  double default_ctas = 0;  ///< of its longest kernel at the default schedules; 0: unknown
};

/// A variant beside the two that a verdict compares.
struct OtherVariant {
  std::string name;
  bool fused = true;
  double ctas = 0;      ///< of its longest kernel, at the default schedule if it was not tried; 0: unknown
  std::string because;  ///< why it has no time: "not tried (--variant)", "cannot run: ..."; empty: it is slower
};

/// One side of a fusion verdict: the largest register count and the lowest occupancy of its kernels, the sum of the
/// rest.
struct Side {
  double seconds = 0, dram_bytes = 0, l2_bytes = 0, arithmetic_intensity = 0, occupancy = 1;
  int registers = 0;
  int64_t spill_bytes = 0;
  size_t launches = 0;
};

/// One part of the difference between two times. The contributions of all causes add up to ln(separate / fused).
struct Cause {
  std::string name;                ///< "work", "launches", "idle", "stall"
  double contribution = 0;         ///< positive: in favour of fusing
  double fused = 0, separate = 0;  ///< launches: their number; work: T_work / T_problem; else the factor of the name
  std::string text;                ///< one clause
};

/// A ratio of two times taken in the same rounds, with its 95 % interval. Origin: measured.
struct Speedup {
  double ratio = 1, low = 1, high = 1;
};
/// A variant's time over that of the fastest.
struct VariantPair {
  std::string variant;
  Speedup over_fastest;
};

/// The measured part of a run. On the simulated driver (docs/use/shim.md) nothing is measured: "measured" and "GPU"
/// below then mean that driver. docs/use/measurement.md describes the protocol.
struct GpuRun {
  Origin origin = Origin::kMeasured;  ///< of the times; kSimulated: the driver has no GPU behind it
  GpuIdentity identity;
  Protocol protocol;
  Check check = Check::kFinalists;
  std::string started;             ///< UTC, "2026-01-31T12:00:00Z"
  uint64_t timed = 0;              ///< candidates
  int buffer_sets = 1;             ///< the fewest of any stage
  std::vector<std::string> notes;  ///< throttling, other processes, ...
  std::string lost_because;        ///< empty: the GPU was there to the end
  double sm_mhz = 0;               ///< of the best variant's samples
  ProblemFloor floor_at_clock;     ///< datasheet ceilings, the SM's at that clock
  double score_at_clock = 0;
};

struct FusionVerdict {
  std::string decision;  ///< "fuse", "separate", "undecided", "fused only", "separate only", "none"
  std::string reason;    ///< one sentence
  double speedup = 0;    ///< unfused time / fused time; 0 when only one can run
  double band = 0;       ///< relative error band of `speedup`; of a measured one half the width of its interval
  std::optional<Speedup> measured;     ///< unfused over fused; measured runs only
  std::optional<Side> fused, unfused;  ///< absent when none of that kind is verified
  std::vector<Cause> causes;           ///< the largest contribution first; empty if no work was counted
};

/// A tried point, for recorded tuning spaces.
struct TimedPoint {
  Schedule schedule;
  std::optional<Measurement> measurement;  ///< with a GPU
  double seconds = 0;                      ///< without: the time that the strategy was told; 0: it failed
  double predicted = 0;                    ///< seconds by the closed form
  int registers = 0;
  int64_t smem_bytes = 0;
  double compile_s = 0, check_s = 0;  ///< 0: remembered
};

/// Candidates that were fast for another problem or on another device, tried here before the strategy chose.
struct WarmStart {
  std::string problem, device;
  uint64_t candidates = 0;
};

struct TuneReport {
  Problem problem;
  OpWords words;  ///< of its op
  Device device;
  std::string executor_device;  ///< "h200-sxm, simulated (no GPU is used)"
  std::string arch;
  std::string compiler;
  std::string strategy;
  uint64_t seed = 0;
  std::vector<WarmStart> warm_starts;        ///< in the order tried
  std::string ended;                         ///< why no further candidate was tried
  uint64_t considered = 0;                   ///< points of all spaces looked at
  std::map<std::string, uint64_t> rejected;  ///< by stage of rejection
  uint64_t compiled = 0;                     ///< binaries obtained, from NVRTC or the cache
  uint64_t compiled_now = 0;                 ///< NVRTC compilations of this run
  uint64_t simulated_binaries = 0;           ///< distinct binaries that passed on every CTA of the reduced problem
  uint64_t sliced_binaries = 0;              ///< distinct binaries that passed on slices only
  uint64_t evaluated_now = 0;                ///< candidates that ran somewhere in this run
  uint64_t simulated_now = 0;                ///< those that ran in this run (the others are from the store)
  std::string closed_form_because;           ///< why the machine code gave some winner no time; empty: it did
  std::vector<Rejected> rejections;
  std::vector<VariantReport> variants;
  std::vector<OtherVariant> untried;  ///< that --variant or --set excluded
  Score score;
  std::string best_variant;
  FusionVerdict verdict;
  std::vector<Warning> warnings;  ///< the rules of docs/use/lint.md, on this result
  std::optional<GpuRun> gpu;      ///< there: times are measured; absent: they are the model's
  std::vector<TimedPoint>
      timed;  ///< with a GPU every timed candidate, else every one tried; in the order of the spaces
  bool interrupted = false;
  /// Origin of the times: the model's when nothing was timed.
  Origin time_origin() const { return gpu && gpu->timed > 0 ? gpu->origin : Origin::kModel; }
  const VariantReport* find(const std::string& name) const {
    for (const VariantReport& v : variants)
      if (v.name == name) return &v;
    return nullptr;
  }
};

}  // namespace roofgen
