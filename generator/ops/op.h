// The interface of an op: dimensions and defaults, buffers, inputs, the reference in double precision, and the
// tolerance of its variants. One file per op; ops.cpp has the table of ops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

class DataFiles;
struct Variant;

/// The contents of inputs (docs/internals/verification.md). kNormal: N(0,1) by a counter-based generator,
/// deterministic. kZeroQuery and kOneHot (attention) and kIntegers (small integers with exact sums) have exact results.
/// kSpecial: kNormal with a few NaN and infinities. kGrowing (attention): kNormal with scores that grow with the key,
/// so that the running maximum moves by steps of 1, 5, 15 and 40. kOneKey (attention): values between kernels that are
/// zero but for one key of each row. kExtremes (gemm, map): many NaN and numbers at which functions saturate or
/// overflow; rows of A of other magnitudes. kExtremeRows (norms, softmax): rows of constants, of other magnitudes and
/// means, with outliers, and with runs of zeros or -inf.
enum class InputPattern {
  kNormal,
  kZeroQuery,
  kOneHot,
  kIntegers,
  kSpecial,
  kExtremes,
  kGrowing,
  kExtremeRows,
  kOneKey
};
/// "normal", "zero query", "one-hot", "integers", "special values", "extremes", "growing scores", "extreme rows", "one
/// key"
const char* to_string(InputPattern pattern);

/// How the elements of an input of kNormal are made, so that a program without the op can make them (docs/use/emit.md).
struct Recipe {
  enum class Kind {
    kStream,  ///< letters (counter_random.h) by the element's number, with `key`
    kRows,    ///< of attention: letters by the column, with a key of (key, batch, head, row)
    kValues,  ///< few numbers, which fill() gives
    kScales,  ///< of blocks of 128 terms: 2^(2u - 1) for u between 0 and 1
    kAngles,  ///< cosines, then sines, of a position in each row of `key` elements
  };
  Kind kind = Kind::kStream;
  uint64_t key = 0;
  bool small = false;  ///< kStream: the letters are -2 .. 2
  // kRows alone:
  DType letters = DType::kBf16;
  bool large = false;               ///< one letter of each row is 64 times larger
  std::vector<double> scales = {};  ///< of each head, by which letters are divided
  /// `count` rows from `row` of a block on are those of a sequence from `first` on. Other rows are NaN.
  struct Run {
    int64_t block, row, batch, first, count;
  };
  std::vector<Run> runs = {};
};

/// A rectangle of output elements of one (batch, head) pair: the unit of verification.
struct Region {
  int64_t batch = 0, head = 0;
  int64_t row_begin = 0, row_end = 0;
  int64_t col_begin = 0, col_end = -1;  ///< -1: to the last column
  std::string output = {};              ///< whose rows these are, where outputs have rows of their own (Op::rows_of)
  bool operator==(const Region&) const = default;
};

/// The extent of the output: rows and columns of each (batch, head) pair, in the units of the kernels' "row" and "col"
/// axes. `cols` 0: regions are whole rows and include all column tiles.
struct Extent {
  int64_t batch = 1, heads = 1, rows = 1, cols = 0;
  /// Rows of each batch where index data decides them (docs/internals/regions.md); `rows` is the largest. Empty: `rows`
  /// each.
  std::vector<int64_t> batch_rows = {};
  /// Rows at which row tiles begin anew, and the number of rows: the groups of a grouped GEMM. Empty: one group. Grid
  /// axes with GridAxis::by_group count the tiles of one group after those of another.
  std::vector<int64_t> groups = {};
  int64_t rows_of(int64_t b) const { return batch_rows.empty() ? rows : batch_rows[static_cast<size_t>(b)]; }
};

/// The least work of any implementation of a problem.
struct RequiredWork {
  double mma_flops = 0;   ///< causal attention: only visible pairs
  double exps = 0;        ///< on the special-function units
  double dram_bytes = 0;  ///< each input read once, each output written once
};

/// Reads elements [first, first + out.size()) of a buffer as doubles. False entries of `*valid` (if given) mark
/// elements that were never written.
class ElementReader {
 public:
  using Read = std::function<Result<void>(const std::string& buffer, uint64_t first, std::span<double> out,
                                          std::vector<bool>* valid)>;
  using Holds = std::function<bool(const std::string& buffer, uint64_t first, std::span<const std::byte> bytes)>;
  /// Of one element that a comparison judges: its value as it was read, what was expected, and the tolerance.
  using Judged = std::function<void(const std::string& buffer, double got, double expected, double tolerance)>;
  template <class F>
  requires(!std::is_same_v<F, ElementReader>) ElementReader(F read, Holds holds = nullptr, Judged judged = nullptr)
      : read_(std::move(read)), holds_(std::move(holds)), judged_(std::move(judged)) {}
  Result<void> operator()(const std::string& buffer, uint64_t first, std::span<double> out,
                          std::vector<bool>* valid) const {
    return read_(buffer, first, out, valid);
  }
  /// True: these bytes were written from element `first` on. False: other bytes, or unknown. No element of `bytes` may
  /// have all bits set.
  bool holds(const std::string& buffer, uint64_t first, std::span<const std::byte> bytes) const {
    return holds_ && holds_(buffer, first, bytes);
  }
  void judged(const std::string& buffer, double got, double expected, double tolerance) const {
    if (judged_) judged_(buffer, got, expected, tolerance);
  }

 private:
  Read read_;
  Holds holds_;
  Judged judged_;
};

/// The error that a NaN, an infinity or a missing element counts as: JSON has no infinity.
inline constexpr double kHopeless = 1e9;

/// The outcome of comparing one region.
struct Comparison {
  uint64_t rows = 0;
  double worst = 0;     ///< max |y - ref| / tolerance
  std::string failure;  ///< one line naming the worst element; empty when worst <= 1 and all written
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string name() const = 0;
  /// What the reference is made of, where the program does not hold it: a stored verification depends on it.
  virtual std::string definition() const { return {}; }
  /// Adds the defaults of the usual benchmarks and rejects invalid problems (Exit::kUsage).
  virtual Result<Problem> complete(Problem problem) const = 0;
  /// What a user may not expect of an accepted problem; empty: nothing.
  virtual std::string warning(const Problem&) const { return {}; }
  /// Inputs and outputs; temporaries belong to variants.
  virtual std::vector<Buffer> buffers(const Problem& problem) const = 0;
  /// Names visible in search-space expressions: dims, flags, strides, element size, dtype.
  virtual expr::Map scope(const Problem& problem) const = 0;
  /// The problem with the smallest batch x heads that still exercises every index map.
  virtual Problem reduced(const Problem& problem) const = 0;
  virtual Extent extent(const Problem& problem) const = 0;
  /// The axis of an output's rows. Outputs of different axes, as gradients by query and by key, are compared apart,
  /// each in regions of its own extent. Empty: all outputs have the rows of extent(), and regions name no output.
  virtual std::string rows_of(const std::string& /*output*/) const { return {}; }
  virtual Extent extent_of(const Problem& problem, const std::string& /*output*/) const { return extent(problem); }
  /// The problem with other scalar arguments, so that a kernel that ignores or exchanges them gives wrong results.
  virtual Problem with_other_scalars(Problem problem) const { return problem; }
  /// The heads from which slices of the real launch are taken; the last head is the last of them.
  virtual std::vector<int64_t> sampled_heads(const Problem& problem) const {
    const int64_t heads = extent(problem).heads;
    return {(heads - 1) / 2, heads - 1};
  }
  /// Rows and columns of a slice of the real launch. `cols` 0: whole rows. Variants of several stages always use whole
  /// rows, because a later stage may read them. `fed_rows`: rows that a stage computes for the next one, whose CTAs may
  /// extend beyond the slice; the row tiles of every stage divide it, unless it is all rows.
  /// `tile`: one row tile is enough for a variant of one stage, because tiles differ only in their place.
  struct Slice {
    int64_t rows, cols, fed_rows;
    bool tile = false;
  };
  virtual Slice slice(const Problem& problem) const = 0;
  /// The rows that a stage of several computes for a slice of the last: those that later stages read.
  using RowRange = std::pair<int64_t, int64_t>;
  virtual std::vector<RowRange> rows_fed(const Problem&, const std::string& /*stage*/, RowRange slice) const {
    return {slice};
  }
  /// The rows of a slice that have all that a pattern varies.
  virtual int64_t least_rows(const Problem&, InputPattern) const { return 1; }
  /// Problems with the output of this one and a shorter sum for each element, the shortest first: on them every tile
  /// of the real launch can run.
  struct Thin {
    Problem problem;
    std::string label;  ///< "kv_len=64"
  };
  virtual std::vector<Thin> thinner(const Problem&) const { return {}; }
  /// The pattern whose outputs differ most between tiles, with a cheap reference.
  virtual InputPattern pattern_of_grid(const Problem&) const { return InputPattern::kNormal; }
  /// The problem in which fill() also makes the values between kernels: each stage can run, and is compared, alone.
  virtual std::optional<Problem> fed(const Problem&) const { return std::nullopt; }
  /// The default of --evals: two cores compile and simulate as many candidates in well under a minute.
  virtual uint64_t default_evals() const { return 72; }
  /// The patterns besides kNormal that every candidate must pass, each on one slice.
  virtual std::vector<InputPattern> patterns(const Problem& problem) const = 0;
  /// The reduced problem on which a pattern is tried.
  virtual Problem with_pattern(Problem reduced, InputPattern) const { return reduced; }
  /// The fusion choices: search_spaces/<op>/*.json unless the op generates them.
  virtual Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const;
  /// nullopt: use the formulas of work/<op>.json.
  virtual std::optional<RequiredWork> required(const Problem&) const { return std::nullopt; }
  /// Writes bytes of an input buffer. Deterministic; thread-safe. An op overrides this or filler().
  virtual void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
                    std::span<std::byte> out) const {
    filler(problem, pattern, buffer)(offset, out);
  }
  /// fill() of one buffer that is filled in many small pieces. Holds copies of its arguments: they may end before it.
  virtual std::function<void(uint64_t offset, std::span<std::byte> out)> filler(const Problem& problem,
                                                                                InputPattern pattern,
                                                                                const std::string& buffer) const {
    return [=, this](uint64_t offset, std::span<std::byte> out) { fill(problem, pattern, buffer, offset, out); };
  }
  virtual Recipe recipe(const Problem& problem, const std::string& buffer) const;
  /// Compares the output of stage `stage` of `variant` with the double-precision reference of the stage, which is
  /// always computed from the inputs of the problem. The last stage is compared with the reference of the whole
  /// problem. `read` reads the buffers of the run.
  virtual Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                                     const std::string& stage, const Region& region,
                                     const ElementReader& read) const = 0;
  /// The bytes of a buffer that any implementation touches: of a cache, those of keys that exist.
  virtual double distinct_bytes(const Problem&, const Buffer& buffer) const {
    return static_cast<double>(buffer.bytes);
  }
  /// Relative work of a region: attention counts visible (query, key) pairs, most ops elements.
  virtual double weight(const Problem& problem, const Region& region) const = 0;
  /// Whether kernels touch only the share of this input or output that `weight` counts, as they do of temporaries.
  virtual bool by_pairs(const std::string&) const { return false; }
  /// Whether kernels touch all of this temporary: rotated rows do not depend on what is visible.
  virtual bool by_rows(const std::string&) const { return false; }
};

/// Problems whose `dim` is shorter, in steps of `step` from the remainder on, each at least `step`; at most 64 of them.
std::vector<Op::Thin> shortened(const Problem& problem, const char* dim, int64_t step);

/// alpha, beta, scale and eps, each with another factor or value.
Problem other_scalars(Problem problem);

/// The ops with a class of their own.
const std::vector<const Op*>& ops();
Result<const Op*> find_op(const std::string& name);  ///< Exit::kUsage with the nearest name
/// Also an op whose reference is formulas of its file (formula_op.h).
Result<const Op*> find_op(const DataFiles& files, const std::string& name);
Result<std::vector<std::string>> op_names(const DataFiles& files);

}  // namespace roofgen
