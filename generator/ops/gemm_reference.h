// Products of a rectangle of C in double precision, from the operands of the tensor cores, with the error of a sum in
// fp32.
#pragma once

#include <memory>
#include <vector>

#include "generator/ops/gemm_shape.h"
#include "generator/ops/op.h"
#include "generator/pointwise/formula.h"

namespace roofgen::gemm {

/// Sums over k_begin <= k < k_end for rows and columns of the product (not of a gated output).
struct Rectangle {
  int64_t row_begin, row_end, col_begin, col_end, k_begin, k_end;
  std::vector<int64_t> rows = {};  ///< not empty: these rows, row_end - row_begin of them
  bool operator==(const Rectangle&) const = default;
};

struct Products {
  int64_t cols = 0;
  std::vector<double> sum;     ///< of a b, with their scales
  std::vector<double> square;  ///< of (a b)^2, likewise
};

/// All candidates are compared on the same rectangles: the most recent ones are cached.
std::shared_ptr<const Products> products_of(const Shape& shape, InputPattern pattern, const Rectangle& where);

/// Standard deviation of the error of an accumulator after `terms` products (docs/internals/verification.md).
double accumulation_sigma(DType dtype, bool scaled, InputPattern pattern, int64_t terms, double sum, double square);

}  // namespace roofgen::gemm
