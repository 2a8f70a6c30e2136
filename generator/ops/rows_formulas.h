// What the row ops compute, as formulas: the whole op in one, and the parts that its unfused forms are made of.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/pointwise/formula.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::rows {

/// What a row op takes beside rows, cols and dtype, and what it is.
struct Spec {
  const char* name;
  bool residual, bias, quant;  ///< whether it has these choices
  double eps;                  ///< the default; 0: it has none
};
extern const Spec kRmsnorm, kLayernorm, kSoftmax, kMap;

/// Formulas by name. "fused" is the whole op. rmsnorm and layernorm: "add" (x + residual), "norm" and "quantise", each
/// from what the one before it wrote. softmax: "partial" (the maximum and the sum of exponentials of a segment of a
/// row), "combine" (those of the row, from its partial ones), "normalise", and "statistics", what combine must come to.
using Formulas = std::map<std::string, pointwise::Formula>;
Result<Formulas> formulas(const Spec& spec, const Problem& problem);

/// The kernels of the unfused form, in their order: names of formulas and of stages alike. Fewer than two: there is
/// nothing to take apart.
std::vector<std::string> unfused_stages(const Spec& spec, const Problem& problem);

DType out_dtype(const Problem& problem);  ///< of y

/// Softmax in three kernels cuts rows that are longer into segments of so many columns
/// (search_spaces/softmax/split.json).
inline constexpr int64_t kSegmentCols = 8192;

}  // namespace roofgen::rows
