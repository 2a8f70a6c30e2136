// An op without a class: its file (op_file.h) has the reference of each output as a formula, docs/internals/ops.md.
//
//   "row_dots": {"dtype": "'fp32'", "axes": ["m"], "is": "sum(x[m,n] * y[m,n])"}
#pragma once

#include <memory>

#include "generator/ops/op.h"

namespace roofgen {

struct OpFile;

/// The op of a file with formulas. Errors carry their position in it.
Result<std::unique_ptr<const Op>> formula_op(const OpFile& file);

}  // namespace roofgen
