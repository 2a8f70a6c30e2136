// What an op knows: its dimensions and defaults, its buffers, its inputs, its reference in double
// precision, and how large a rounding error its variants may make. One file per op; the table of
// ops is in ops.cpp.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// What the inputs hold. kNormal: N(0,1) by a counter-based generator, the same everywhere.
/// kZeroQuery and kOneHot have answers that are exact (docs/verification.md).
enum class InputPattern { kNormal, kZeroQuery, kOneHot };

/// A band of output rows of one (batch, head) pair: what verification computes and compares.
struct RowBand {
  int64_t batch = 0, head = 0;
  int64_t row_begin = 0, row_end = 0;
};

/// Reads elements [first, first + out.size()) of a buffer as doubles; false entries of `*valid`
/// (if given) mark elements never written.
using ElementReader = std::function<Result<void>(const std::string& buffer, uint64_t first,
                                                 std::span<double> out, std::vector<bool>* valid)>;

/// The outcome of comparing one band.
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
  /// Writes bytes of an input buffer. Deterministic; thread-safe.
  virtual void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
                    std::span<std::byte> out) const = 0;
  /// Compares what stage `stage` of `variant` wrote (its output buffer) against the double-precision
  /// reference of that stage. The last stage of a variant is compared with the reference of the
  /// whole problem computed from the inputs; earlier stages with their own definition, also from
  /// the inputs. `read` reads the buffers of the run.
  virtual Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                                     const std::string& stage, const RowBand& band,
                                     const ElementReader& read) const = 0;
  /// Work of a band relative to that of others: attention counts allowed (query, key) pairs. The
  /// band of all rows of one head is `{b, h, 0, L}`.
  virtual double weight(const Problem& problem, const RowBand& band) const = 0;
};

const std::vector<const Op*>& ops();
Result<const Op*> find_op(const std::string& name);  ///< Exit::kUsage with the nearest name

}  // namespace roofgen
