// The elementwise computation of a kernel between its source (a loaded value, an accumulator, a score) and its outputs:
// a list of definitions in the expression language. One parse gives the CUDA text for templates, its cost, and the
// reference with its error (docs/use/epilogues.md).
//
//   source `acc`, definitions { e = gelu(acc + bias[n]),  y = e * rsqrt(mean(e * e) + eps) * weight[n] }
//
// Reductions over the row (sum(x), mean(x), amax(x), and max(x), min(x) of one argument) divide the work into *phases*:
// phase i computes one term of reduction i for every element; afterwards r<i> is the row's total.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::pointwise {

/// `name` = `text`, an expression of the source, earlier definitions, tensors, scalars, indices (integers) and the
/// functions of docs/use/epilogues.md.
struct Definition {
  std::string name, text;
  std::string argument = "--epilogue";  ///< the option with the text, for messages
};

/// A stored value: an element of [row, column], or one per row (then it must not vary along the row).
struct Output {
  std::string value;  ///< a definition, or the source
  std::string buffer;
  DType dtype = DType::kBf16;
  bool per_row = false;
  bool is_float = false;  ///< also where format and value are integers
};

/// Whether an output of this format needs the exact forms of functions. The fast forms suffice for 16 bits or fewer.
inline bool is_exact(DType output) { return size_of(output) > 2; }

/// The names that definitions may use.
struct Vocabulary {
  std::string source = "acc";
  DType source_dtype = DType::kFp32;              ///< in memory; of accumulators kFp32, or kInt32
  std::vector<std::string> indices = {"m", "n"};  ///< of an element; the last runs along the row
  std::vector<TensorArg> tensors;                 ///< available tensors, declared ones included
  std::map<std::string, double> scalars;          ///< kernel arguments by value
  std::string no_reductions;                      ///< not empty: reductions are refused, with this reason
};

/// Tensors of these formats are integers of formulas. A source is one if it has 32 bits.
inline bool has_integers(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kInt32; }
inline bool has_integer_source(const Vocabulary& v) { return v.source_dtype == DType::kInt32; }

/// Operations per element of a row, counted on the shared syntax tree, before the compiler optimises it.
struct Cost {
  double fp32 = 0;  ///< FMA-pipe operations
  double alu = 0;   ///< compares, selects, min, max, conversions
  double mufu = 0;  ///< special-function operations (exp, tanh, rsqrt, rcp)
  double exps = 0;  ///< of them, exponentials
  int reductions = 0;
};

/// A value and the standard deviation of a correct kernel's error.
struct Estimate {
  double value = 0, sigma = 0;
};

/// Elements [first, first + out.size()) along the row of a tensor; the row is given by the indices before the last.
using TensorReader =
    std::function<void(const TensorArg& tensor, std::span<const int64_t> row, int64_t first, std::span<double> out)>;

struct Body;

class Formula {
 public:
  /// Errors: Exit::kUsage with argument, column, caret and the nearest name.
  static Result<Formula> parse(std::vector<Definition> definitions, std::vector<Output> outputs, Vocabulary vocabulary);

  const Vocabulary& vocabulary() const;
  const std::vector<Output>& outputs() const;
  const std::vector<TensorArg>& tensors() const;  ///< read by the formula, in order of first use
  std::vector<std::string> scalars() const;       ///< read by the formula, sorted
  int reductions() const;
  Cost cost() const;
  /// Whether an output of int32 is the result of fp32 arithmetic, whose whole numbers are exact up to 2^24.
  bool rounds_integers() const;
  /// The template's `formula`; docs/use/epilogues.md specifies the keys and the text of `cuda`.
  expr::Map scope() const;

  /// One whole row (or the part [first_col, ...) of it where there are no reductions): `source` with its errors,
  /// `row` the indices before the last. Gives each output, in their order; per_row outputs have one element.
  /// Output rounding is not included.
  std::vector<std::vector<Estimate>> evaluate(std::span<const Estimate> source, std::span<const int64_t> row,
                                              int64_t first_col, const TensorReader& read) const;

 private:
  std::shared_ptr<const Body> body_;
};

/// The reference of a single function of docs/use/epilogues.md (`<function>_fast` or `<function>_exact` in
/// lib/pointwise.cuh), for gated forms. NaN if there is no such function.
Estimate apply(std::string_view function, const Estimate& x, bool fast);

/// `name:dtype[i,j]` as after --arg; Exit::kUsage with a caret otherwise.
Result<TensorArg> parse_tensor_arg(std::string_view text);

}  // namespace roofgen::pointwise
