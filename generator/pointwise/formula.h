// What a kernel does to each element between its source (a value it loads, an accumulator, a score) and its
// outputs: a short list of definitions in the expression language. One parse gives the CUDA text that templates
// splice, its cost, and the reference with its error (docs/epilogues.md).
//
//   source `acc`, definitions { e = gelu(acc + bias[n]),  y = e * rsqrt(mean(e * e) + eps) * weight[n] }
//
// A reduction over the row, sum(x), mean(x), amax(x), or max(x) and min(x) of one argument, cuts the work into
// *phases*: phase i computes one term of reduction i for every element, then the row's total is known as r<i>.
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

/// `name` becomes the value of `text`, which may use the source, earlier definitions, tensors, scalars, indices
/// (whole numbers) and the functions of docs/epilogues.md.
struct Definition {
  std::string name, text;
  std::string argument = "--epilogue";  ///< what the user wrote it after, for messages
};

/// A value that is written: an element of [row, column], or one of each row (it must not differ along the row).
struct Output {
  std::string value;  ///< a definition, or the source
  std::string buffer;
  DType dtype = DType::kBf16;
  bool per_row = false;
};

/// Whether an output of this format takes the functions' exact forms; where it has 16 bits or fewer, the fast ones do.
inline bool is_exact(DType output) { return size_of(output) > 2; }

/// What the definitions may name.
struct Vocabulary {
  std::string source = "acc";
  DType source_dtype = DType::kFp32;              ///< as it is stored; kFp32 for accumulators
  std::vector<std::string> indices = {"m", "n"};  ///< of an element; the last runs along the row
  std::vector<TensorArg> tensors;                 ///< those that may be read, declared ones included
  std::map<std::string, double> scalars;          ///< kernel arguments by value
  std::string no_reductions;                      ///< not empty: why a reduction over the row is refused here
};

/// Per element of a row, counted on the syntax tree after sharing: not what the compiler makes of it.
struct Cost {
  double fp32 = 0;  ///< FMA-pipe operations
  double alu = 0;   ///< compares, selects, min, max, conversions
  double mufu = 0;  ///< special-function operations (exp, tanh, rsqrt, rcp)
  double exps = 0;  ///< of them, exponentials
  int reductions = 0;
};

/// A value and the standard deviation of the error that a correct kernel may have made on the way to it.
struct Estimate {
  double value = 0, sigma = 0;
};

/// Elements [first, first + out.size()) along the row of a tensor; the row is given by the indices before the last.
using TensorReader =
    std::function<void(const TensorArg& tensor, std::span<const int64_t> row, int64_t first, std::span<double> out)>;

struct Body;

class Formula {
 public:
  /// Exit::kUsage with argument, column, caret and the nearest name for what the user got wrong.
  static Result<Formula> parse(std::vector<Definition> definitions, std::vector<Output> outputs, Vocabulary vocabulary);

  const Vocabulary& vocabulary() const;
  const std::vector<Output>& outputs() const;
  const std::vector<TensorArg>& tensors() const;  ///< those that are read, in order of first use
  std::vector<std::string> scalars() const;       ///< those that are read, sorted
  int reductions() const;
  Cost cost() const;
  /// What templates see as `formula`; the keys and the text of `cuda` are specified in docs/epilogues.md.
  expr::Map scope() const;

  /// One whole row (or the part [first_col, ...) of it where there are no reductions): `source` with its errors,
  /// `row` the indices before the last. Gives each output, in their order; per_row outputs have one element.
  /// Output rounding is not included.
  std::vector<std::vector<Estimate>> evaluate(std::span<const Estimate> source, std::span<const int64_t> row,
                                              int64_t first_col, const TensorReader& read) const;

 private:
  std::shared_ptr<const Body> body_;
};

/// A function of docs/epilogues.md on its own, as `<function>_fast` or `<function>_exact` of lib/pointwise.cuh computes
/// it: the reference of gated forms. NaN when there is no such function.
Estimate apply(std::string_view function, const Estimate& x, bool fast);

/// `name:dtype[i,j]` as after --arg; Exit::kUsage with a caret otherwise.
Result<TensorArg> parse_tensor_arg(std::string_view text);

}  // namespace roofgen::pointwise
