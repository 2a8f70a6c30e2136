// Compares what a kernel wrote through a Formula with the reference: rows of the source in, every output judged.
#pragma once

#include <functional>
#include <vector>

#include "generator/ops/elements.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

/// The source of row `row`, columns [first, first + count): values and errors before the formula.
using SourceRow = std::function<std::vector<pointwise::Estimate>(int64_t row, int64_t first, int64_t count)>;

/// Compares every output of the formula over a region of an [rows, cols] problem; where it reduces over the row, the
/// region must hold whole rows. Row-major outputs with `cols` (per_row: 1) elements a row.
/// Tolerance: one ulp of the output's dtype at the expected value + kSigmas sigma.
Result<Comparison> compare_formula(const pointwise::Formula& formula, const Region& region, int64_t cols, InputPattern pattern,
                                   const SourceRow& source, const ElementReader& read);

}  // namespace roofgen
