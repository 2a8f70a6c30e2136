// Work of an elementwise chain that a user writes as an expression: `relu(x + bias[n])`.
#pragma once

#include <string>

#include "roofline/work.h"

namespace roofgen {

struct ElementwiseRequest {
  std::string expression;
  int64_t rows = 1;
  int64_t cols = 0;
  std::string dtype = "bf16";  ///< of all tensors
  bool unfused = false;        ///< every operation a kernel of its own, its result in memory
};

/// `x` is a tensor of rows x cols; `bias[n]` one value per column, `w[m]` one per row; `alpha`, `beta`, `scale` are
/// scalars. Operators + - * /; functions: elementwise_functions(). Exit::kUsage with a caret for anything else.
Result<OpWork> elementwise_work(const ElementwiseRequest& request);

/// What --help says: names with the FLOPs and special-function operations each counts.
std::string elementwise_functions();

}  // namespace roofgen
