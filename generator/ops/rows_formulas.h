// The formulas of the row ops: the whole op, and the parts of its unfused forms.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/pointwise/formula.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::rows {

/// A row op: its name, and its options besides rows, cols and dtype.
struct Spec {
  const char* name;
  bool residual, bias, quant;  ///< whether it has these options
  double eps;                  ///< the default; 0: no eps
};
extern const Spec kRmsnorm, kLayernorm, kSoftmax, kMap;

/// Formulas by name. "fused" is the whole op. rmsnorm and layernorm: "add" (x + residual), "norm" and "quantise", each
/// of the previous one's output. softmax: "partial" (maximum and sum of exponentials of a segment of a row), "combine"
/// (maximum and sum of the row, from its segments), "normalise", and "statistics", the reference of combine.
using Formulas = std::map<std::string, pointwise::Formula>;
Result<Formulas> formulas(const Spec& spec, const Problem& problem);

/// The kernels of the unfused form, in order: names of formulas and of stages. Fewer than two: the problem has no
/// unfused form.
std::vector<std::string> unfused_stages(const Spec& spec, const Problem& problem);

DType out_dtype(const Problem& problem);  ///< of y

/// Columns of a segment: softmax in three kernels divides longer rows
/// (search_spaces/softmax/split.json).
inline constexpr int64_t kSegmentCols = 8192;

}  // namespace roofgen::rows
