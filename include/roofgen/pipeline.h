// READ THIS FIRST: the values that flow through roofgen, in order of flow. Each is made from the values before it; none
// points upstream.
//
//   Problem -> Variant -> Schedule -> Legal -> Program -> Binary -> Evaluation -> KernelReport -> VariantReport
//     -> FusionVerdict, Score -> TuneReport
//
// A candidate that fails at any step is a Rejected: data, which `--explain` shows. Values of other folders are only
// named here, with their headers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// The source of a number. Every number in the output carries one; simulated and measured times never share a ranking.
enum class Origin { kDatasheet, kCompiled, kModel, kSimulated, kMeasured, kCounter };
const char* to_string(Origin origin);

/// Number formats of tensors. kTf32: fp32 in memory, of which tensor cores read the upper 19 bits. kFp8: e4m3 (largest
/// value 448, no infinity).
enum class DType { kBf16, kFp16, kFp32, kTf32, kFp8, kInt8, kInt32 };
const char* to_string(DType dtype);  ///< "bf16", "fp16", "fp32", "tf32", "fp8", "int8", "int32"
std::optional<DType> parse_dtype(const std::string& name);
int size_of(DType dtype);  ///< bytes per element

// ---- Problem ---------------------------------------------------------------------------------

/// A tensor that a user's expression reads: `--arg slope:fp32[h]`. One element for each value of its indices, the last
/// index contiguous; without indices a single element.
struct TensorArg {
  std::string name;
  DType dtype = DType::kFp32;
  std::vector<std::string> indices;
  bool operator==(const TensorArg&) const = default;
};
std::string to_string(const TensorArg& arg);  ///< "slope:fp32[h]"

/// The problem to solve. `dims` holds every size by name (attention: L, kv_len, d, batch, heads, kv_heads), `flags` the
/// yes/no choices (causal, lse), `reals` other numbers (scale), `texts` choices by name and expressions as written
/// (epilogue, quant), `dtypes` formats of tensors that differ from `dtype` (out), `args` the tensors declared for the
/// expressions.
struct Problem {
  std::string op;
  std::map<std::string, int64_t> dims;
  DType dtype = DType::kBf16;
  std::map<std::string, bool> flags;
  std::map<std::string, double> reals;
  std::map<std::string, std::string> texts = {};
  std::map<std::string, DType> dtypes = {};
  std::vector<TensorArg> args = {};
};
/// The whole problem on one line, in a canonical form: "gemm bf16 K=64 M=8 N=8 epilogue='acc * 2'".
std::string to_string(const Problem& problem);

// ---- Variant and Schedule ----------------------------------------------------------------------

/// A Variant is one way to split a problem into kernels: an ordered list of stages (kernels) and the temporaries
/// between them. Fused attention has one stage, unfused attention three; each stage is tuned on its own. Stages and
/// temporaries are made of expressions: generator/generate.h adds them to this part.
struct VariantInfo {
  std::string op, name, description;
  bool fused = true;  ///< its side of the verdict; unless its JSON says so, variants of one stage are fused
};

/// One tunable value: tile sizes are integers, placements are strings.
using ParamValue = std::variant<int64_t, bool, std::string>;

/// A point of one stage's search space. Prints as `fused BM=128 BN=64 stages=2`: variant, the stage
/// name unless the variant has only one, then the parameters in the order the space declares them.
struct Schedule {
  std::string variant;
  std::string stage;
  std::vector<std::pair<std::string, ParamValue>> params;
};
std::string to_string(const Schedule& schedule);
std::string to_string(const ParamValue& value);

/// A device buffer of a problem. Sizes are in bytes; the op defines the layout. kUpdated: an input of which kernels
/// also write a part (a cache that grows); like an output it is compared, like an input it has contents before the
/// first kernel.
struct Buffer {
  enum class Role { kInput, kTemporary, kOutput, kUpdated };
  std::string name;
  DType dtype = DType::kBf16;
  uint64_t bytes = 0;
  Role role = Role::kInput;
  bool has_contents() const { return role == Role::kInput || role == Role::kUpdated; }  ///< before the first kernel
  bool zeroed = false;  ///< of a temporary: zero before the first launch, and again after each
};

/// generator/generate.h: a Schedule that satisfies the rules of its space and the limits of the device, with the scope
/// that its template and its launch are made of.
struct Legal;

// ---- Program -----------------------------------------------------------------------------------

/// The template line that produced each line of a generated source; index 0 is line 1.
struct LineMap {
  std::vector<Where> lines;
};

/// Generated CUDA C++ of one kernel: one stage at one schedule.
struct Program {
  Schedule schedule;
  std::string source;
  std::string entry;  ///< extern "C" name of the __global__ function
  LineMap line_map;
  std::string target = {};  ///< "sm_90a": the only architecture that has its instructions; empty: the device's
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// One axis of the grid. A grid dimension may be flattened from several axes, fastest first. `step` is the number of
/// elements of the axis that one CTA covers (1 for heads). Names with a meaning: "row" (output rows), "col" (output
/// columns), "head", "batch". They select the CTAs of a slice of a large problem: a few (batch, head) pairs or a band
/// of rows.
struct GridAxis {
  std::string name;
  int dim = 0;  ///< 0, 1, 2: x, y, z
  int64_t extent = 1;
  int64_t step = 1;
  bool reverse = false;   ///< index i covers the tile extent - 1 - i (longest causal rows first)
  bool by_group = false;  ///< of rows: no tile has rows of two groups; index data decides where tiles begin
  int64_t tile = 0;       ///< elements that the CTA computes as a whole, of several in a step; 0: all of the step
};

/// How the tensor copy engine sees a buffer (cuTensorMapEncodeTiled; sm_90 and newer). Dimension 0 is contiguous.
struct TensorMap {
  DType dtype = DType::kBf16;
  std::vector<uint64_t> dims;          ///< elements
  std::vector<uint64_t> stride_bytes;  ///< of dimensions 1 to rank - 1
  std::vector<uint32_t> box;           ///< elements
  int swizzle_bytes = 0;               ///< 0, 32, 64 or 128
  bool nan_fill = false;               ///< out-of-bounds elements read as NaN instead of zero
  int l2_promotion_bytes = 0;          ///< 0, 64, 128 or 256
};
/// The rule of cuTensorMapEncodeTiled that a map of a buffer at `address` breaks, in words; empty: none.
std::string fault_in(const TensorMap& map, uint64_t address);

/// One kernel argument: a buffer by name, a scalar in its raw little-endian form, or the bytes of a struct. With `map`
/// the kernel takes a descriptor of the buffer by value (128 bytes, `const __grid_constant__ CUtensorMap`).
struct Arg {
  std::string name;
  bool is_buffer = false;
  uint64_t bits = 0;   ///< scalar payload
  uint32_t bytes = 8;  ///< 4 or 8; of a struct: all of its bytes
  std::shared_ptr<const TensorMap> map = nullptr;
  std::vector<std::byte> data = {};  ///< of a struct
};

/// Static shared memory of a CTA, on every architecture (CUDA C++ Programming Guide, "Compute Capabilities").
inline constexpr int64_t kMostStaticSmem = 48 << 10;

/// The launch of a Program for one Problem. Computed separately from the source, because one binary serves many sizes.
struct Launch {
  Dim3 grid, block;
  uint32_t smem_bytes = 0;  ///< dynamic shared memory
  std::vector<Arg> args;
  std::vector<GridAxis> axes;
  Dim3 cluster;          ///< CTAs of a cluster; 1 x 1 x 1: no clusters
  bool overlap = false;  ///< programmatic dependent launch: may start before the previous kernel in the stream ends
};

// ---- Binary ------------------------------------------------------------------------------------

/// A compiled Program. Registers and spills are as ptxas reports them (origin: compiled).
struct Binary {
  std::string digest;  ///< SHA-256 of all inputs of the compilation; the key in cache and store
  std::string arch;    ///< "sm_90"
  std::string entry;
  std::string ptx;
  std::string cubin;
  std::string log;
  int registers = 0;        ///< per thread
  int64_t spill_bytes = 0;  ///< stores + loads, static count per thread
  int64_t stack_bytes = 0;
  int64_t static_smem_bytes = 0;
  std::vector<std::string> advisories;  ///< ptxas performance advisories, verbatim
};

// ---- Verification, counts, measurement ---------------------------------------------------------

/// An error of a kernel that the simulator detected: undefined behaviour, or a fault on real hardware.
struct Finding {
  std::string kind;     ///< "out-of-bounds", "race", ... one word each, documented in docs/use/findings.md
  std::string message;  ///< one line, with addresses and the expected state
  std::string kernel;
  Where ptx;     ///< line of the PTX
  Where source;  ///< template line through `.loc`, when known
  uint64_t cta = 0;
  uint32_t thread = 0;
  uint64_t count = 1;        ///< times that it occurred, over lanes and CTAs
  uint64_t ctas = 1;         ///< CTAs in which it occurred
  bool within_warp = false;  ///< a race between lanes of one warp
};

/// Counts a finding of the same kind and place too. A race between warps is told rather than one between lanes, because
/// the barrier that it needs orders lanes as well.
inline void merge(Finding& into, Finding f) {
  f.count += into.count;
  f.ctas = into.ctas = std::max(f.ctas, into.ctas);
  if (into.within_warp && !f.within_warp)
    into = std::move(f);
  else
    into.count = f.count;
}

/// Exact event counts of the simulated CTAs; ratios of CTAs scale them to a whole grid. Instruction counts are
/// warp-instructions.
struct Counts {
  uint64_t ctas = 0;
  uint64_t warp_instructions = 0;
  uint64_t mma = 0;        ///< warp-level mma.sync instructions
  uint64_t mma_flops = 0;  ///< 2*m*n*k each
  uint64_t int_alu = 0, fp32 = 0, half = 0, fp64 = 0, convert = 0, move = 0, control = 0, predicate = 0;
  uint64_t mufu = 0;  ///< warp-instructions on the special function unit
  uint64_t exps = 0;  ///< lane-level ex2 executed by active lanes
  uint64_t shuffle = 0;
  uint64_t ldmatrix = 0, cp_async = 0, barriers = 0;
  uint64_t async_waits = 0;     ///< warp-level wait_group instructions that completed at least one copy
  uint64_t async_distance = 0;  ///< sum of the instructions that the warp executed since the last of these copies
  uint64_t global_load = 0, global_store = 0, shared_load = 0, shared_store = 0, local = 0, atomics = 0;
  uint64_t bulk_load_16 = 0;                                   ///< lane accesses of cp.async / ld.global of 16 bytes
  uint64_t narrow_load = 0;                                    ///< lane accesses of global loads narrower than 16 bytes
  uint64_t l2_read_sectors = 0, l2_write_sectors = 0;          ///< requests of 32-byte sectors from L1 to L2
  uint64_t smem_wavefronts = 0;                                ///< shared-memory cycles, bank conflicts included
  uint64_t smem_ideal_wavefronts = 0;                          ///< the same accesses without bank conflicts
  uint64_t unique_read_sectors = 0, unique_write_sectors = 0;  ///< distinct 32-byte sectors touched
  Counts& operator+=(const Counts& other);
};

/// Extent and outcome of a candidate's verification.
struct Verification {
  bool passed = false;
  uint64_t ctas_run = 0, ctas_total = 0;  ///< of the reduced batch x heads problem at the real lengths
  uint64_t rows_checked = 0;
  double error_over_tolerance = 0;  ///< worst |y - ref| / tolerance over all checked elements
  std::vector<Finding> findings;
  std::string failure;                                  ///< one line when not passed
  uint64_t launch_ctas_run = 0, launch_ctas_total = 0;  ///< of the real launch
  bool launch_in_tiles = false;                         ///< they count tiles: the CTAs are persistent, one ran for each
  std::string inputs;                                   ///< the patterns, separated by commas
  /// Every CTA of the real grid ran with a shorter sum, "kv_len=64", or as it is, "": all outputs were written, each by
  /// one CTA. 0: it did not run.
  uint64_t grid_ctas = 0;
  std::string grid;
  /// Of kernels whose CTAs walk over tiles: what ran as it is launched, "1 CTA with all of its 22 tiles" or "all 132
  /// CTAs with their shares of the sums".
  std::string division;
  /// Checks that apply and did not run, each with the reason: "whole grid not run: outputs and intermediates take 2.15
  /// GB".
  std::vector<std::string> not_run;
  /// Adds the comparisons of another run of the same kernel.
  void add_checks(const Verification& other);
};

/// tuner/verify/verify.h: all that one run of a Binary gave: its Verification, its Counts, and what they stand for.
struct Evaluation;

/// One timing sample on a GPU: the launches between two events.
struct Sample {
  double time_ns = 0;
  double sm_mhz = 0;         ///< mean SM clock across the shot; 0: unknown
  double power_w = 0;        ///< of the board, right after; 0: unknown
  double temperature_c = 0;  ///< 0: unknown
  uint64_t limits = 0;       ///< NVML's clocks event reasons, as a bit set; 0: none, or unknown
};

/// Statistics of the samples of one timing mode. Quartiles, because outliers are slow, never fast.
struct Timing {
  double median_ns = 0, q1_ns = 0, q3_ns = 0, min_ns = 0;
  double low_ns = 0, high_ns = 0;  ///< 95 % interval of the median, by order statistics
  uint64_t samples = 0;            ///< used samples
  uint64_t discarded = 0;          ///< excluded: taken while the clock was throttled
  std::string stopped;             ///< "settled", "most samples", "out of time", "behind", "interrupted"
  std::vector<double> times_ns;    ///< of the used samples, in order
};

/// The timing of one candidate. Origin: measured.
struct Measurement {
  std::optional<Timing> cold;  ///< L2 flushed before each sample, outside the timed region
  std::optional<Timing> hot;   ///< repeated on the same buffers
  int batch = 1;               ///< launches between two events; above 1 for kernels too short to time alone
  double sm_mhz = 0, power_w = 0, temperature_c = 0;  ///< medians over the cold samples, or else the hot; 0: unknown
  uint64_t power_capped =
      0;  ///< samples during which the power limit throttled the clock: the usual state of a busy GPU
};

// ---- Reports and score ------------------------------------------------------------------------

/// tuner/report.h: a verified candidate with its work, its time by the model or a Measurement, and the factors of the
/// time. VariantReport: the winners of all stages in a row. FusionVerdict: the best fused variant against the best
/// unfused one, and why. TuneReport: all of a search; each view prints this one struct.
struct KernelReport;
struct VariantReport;
struct FusionVerdict;
struct TuneReport;

/// T_problem: the least time of any implementation at full-chip rates, and the roof that sets it. Origin: model.
struct ProblemFloor {
  double seconds = 0;
  std::string bound_by;
};

/// How the time T of a kernel follows from the floor: T = T_problem x waste x idle x stall (docs/internals/model.md).
struct TimeFactors {
  double waste = 0;  ///< work done over work required
  double idle = 0;   ///< waves, tail, idle SMs and launches
  double stall = 0;  ///< the rest of the time
};

/// The best verified variant against the roofline.
struct Score {
  ProblemFloor floor, floor_datasheet;  ///< by the device's sustained rates, and by its datasheet
  double value = 0, datasheet = 0;      ///< T_problem / T for each floor; 0: no variant was verified
};

/// A rejected candidate, with the reason; or, of a rule that cuts off many points of a space, the first of them.
struct Rejected {
  Schedule schedule;
  std::string stage;   ///< "constraint", "memory", "compile", "timeout", "spill", "verify", ...
  std::string reason;  ///< one line, with the failing comparison and its values
  uint64_t points = 1;
};

}  // namespace roofgen
