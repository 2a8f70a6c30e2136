// What an op knows: its dimensions and defaults, its buffers, its inputs, its reference in double
// precision, and how large a rounding error its variants may make. One file per op; the table of
// ops is in ops.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

class DataFiles;
struct Variant;

/// What the inputs hold. kNormal: N(0,1) by a counter-based generator, the same everywhere. kZeroQuery and
/// kOneHot (attention) and kIntegers (small integers, so that sums are exact) have answers that are exact
/// (docs/verification.md). kSpecial: kNormal with a few NaN and infinities.
enum class InputPattern { kNormal, kZeroQuery, kOneHot, kIntegers, kSpecial };
const char* to_string(InputPattern pattern);  ///< "normal", "zero query", "one-hot", "integers", "special values"

/// A rectangle of output elements of one (batch, head) pair: what verification computes and compares.
struct Region {
  int64_t batch = 0, head = 0;
  int64_t row_begin = 0, row_end = 0;
  int64_t col_begin = 0, col_end = -1;  ///< -1: to the last column
};

/// The output that regions are cut from: rows and columns of each (batch, head) pair, as the "row" and "col" axes of
/// its kernels count them. `cols` 0: regions are whole rows, and column tiles are all taken.
struct Extent {
  int64_t batch = 1, heads = 1, rows = 1, cols = 0;
};

/// What no implementation of a problem can do without.
struct RequiredWork {
  double mma_flops = 0;   ///< causal attention counts only the allowed part
  double exps = 0;        ///< on the special-function units
  double dram_bytes = 0;  ///< each input read once, each output written once
};

/// Reads elements [first, first + out.size()) of a buffer as doubles; false entries of `*valid`
/// (if given) mark elements never written.
using ElementReader = std::function<Result<void>(const std::string& buffer, uint64_t first, std::span<double> out,
                                                 std::vector<bool>* valid)>;

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
  /// Fills in the defaults of the field's benchmark convention and rejects what cannot be (Exit::kUsage).
  virtual Result<Problem> complete(Problem problem) const = 0;
  /// Inputs and outputs (temporaries are the variant's). Byte sizes and layout are for the given problem.
  virtual std::vector<Buffer> buffers(const Problem& problem) const = 0;
  /// Names visible in search-space expressions: dims, flags, strides, element size, dtype.
  virtual expr::Map scope(const Problem& problem) const = 0;
  /// The same problem with batch x heads cut to the smallest that still exercises every index map.
  virtual Problem reduced(const Problem& problem) const = 0;
  virtual Extent extent(const Problem& problem) const = 0;
  /// Rows and columns of a slice of the real launch. `cols` 0: whole rows, which is also what variants of several
  /// stages take, because a later stage may read whole rows. `fed_rows`: what a stage computes for the next, whose CTAs
  /// may reach beyond the slice; the row tiles of every stage divide it.
  struct Slice {
    int64_t rows, cols, fed_rows;
  };
  virtual Slice slice(const Problem& problem) const = 0;
  /// Candidates tried unless the user says how many: what two cores compile and simulate in well under a minute.
  virtual uint64_t default_evals() const { return 72; }
  /// The patterns beside kNormal that every candidate must pass, each run on one slice.
  virtual std::vector<InputPattern> exact_patterns(const Problem& problem) const = 0;
  /// Its fusion choices: search_spaces/<op>/*.json unless the op makes them.
  virtual Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const;
  /// nullopt: by the formulas of work/<op>.json.
  virtual std::optional<RequiredWork> required(const Problem&) const { return std::nullopt; }
  /// Writes bytes of an input buffer. Deterministic; thread-safe.
  virtual void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
                    std::span<std::byte> out) const = 0;
  /// Compares what stage `stage` of `variant` wrote (its output buffer) against the double-precision
  /// reference of that stage. The last stage of a variant is compared with the reference of the
  /// whole problem computed from the inputs; earlier stages with their own definition, also from
  /// the inputs. `read` reads the buffers of the run.
  virtual Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                                     const std::string& stage, const Region& region,
                                     const ElementReader& read) const = 0;
  /// Work of a region relative to that of others: attention counts allowed (query, key) pairs, most ops elements.
  virtual double weight(const Problem& problem, const Region& region) const = 0;
  /// An input or output that is touched as far as `weight` counts it, as temporaries are; others as a whole.
  virtual bool by_pairs(const std::string&) const { return false; }
};

const std::vector<const Op*>& ops();
Result<const Op*> find_op(const std::string& name);  ///< Exit::kUsage with the nearest name

}  // namespace roofgen
