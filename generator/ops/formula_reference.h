// Compares what a kernel wrote through a Formula with the reference: rows of the source in, every output judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/ops/elements.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

/// The source of row `row`, columns [first, first + count): values and errors before the formula.
using SourceRow = std::function<std::vector<pointwise::Estimate>(int64_t row, int64_t first, int64_t count)>;

/// Reads the tensors of a formula from their TensorContents, for Formula::evaluate. `indices` are those of an element
/// (Vocabulary::indices); from the last to the first they run over cols, rows, heads and batch of `extent`.
pointwise::TensorReader contents_reader(std::vector<std::string> indices, const Extent& extent, InputPattern pattern);

/// Compares every output of the formula over a region of a problem of `extent`; where it reduces over the row, the
/// region must hold whole rows. Row-major outputs with extent.cols (per_row: 1) elements a row; those of per_row are
/// judged with the regions that begin at column 0.
/// Tolerance: half an ulp of the output's dtype at the expected value, its rounding, + kSigmas sigma.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, const Extent& extent,
                                   InputPattern pattern, const SourceRow& source, const ElementReader& read);

}  // namespace roofgen
