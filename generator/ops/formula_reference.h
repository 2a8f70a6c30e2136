// Compares a kernel's outputs of a Formula with the reference, computed from rows of the source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/ops/elements.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

/// The source of row `row`, columns [first, first + count): values and errors before the formula.
using SourceRow = std::function<std::vector<pointwise::Estimate>(int64_t row, int64_t first, int64_t count)>;

/// Reads the tensors of a formula from their TensorContents, for Formula::evaluate. `indices`: of an element
/// (Vocabulary::indices); from last to first they run over cols, rows, heads and batch of `extent`.
pointwise::TensorReader contents_reader(std::vector<std::string> indices, const Extent& extent, InputPattern pattern);

/// Compares every output of the formula over a region of a problem of `extent`. If the formula reduces over the row,
/// the region must hold whole rows. Outputs are row-major with extent.cols (per_row: 1) elements per row; per_row
/// outputs are compared with the regions that start at column 0. Tolerance: half an ulp of the output's dtype at the
/// expected value (its rounding) + kSigmas sigma.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   InputPattern pattern, const SourceRow& source, const ElementReader& read);
/// The same with tensors read by `tensors`.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   const pointwise::TensorReader& tensors, const SourceRow& source,
                                   const ElementReader& read);

}  // namespace roofgen
