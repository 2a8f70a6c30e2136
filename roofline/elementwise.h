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
  bool unfused = false;        ///< each operation is a separate kernel that writes its result to memory
};

/// `x` is a tensor of rows x cols; `bias[n]` has one value per column, `w[m]` one per row; `alpha`, `beta`, `scale` are
/// scalars. Operators + - * /; functions: elementwise_functions(). Exit::kUsage with a caret for anything else.
Result<OpWork> elementwise_work(const ElementwiseRequest& request);

/// The function names with their FLOPs and special-function operations, for --help.
std::string elementwise_functions();

}  // namespace roofgen
