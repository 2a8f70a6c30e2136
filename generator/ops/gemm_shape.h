// The dimensions of a GEMM problem.
#pragma once

#include <string>

#include "roofgen/pipeline.h"

namespace roofgen::gemm {

/// A dimension that verification adds to a problem: Shape::pad.
inline constexpr const char* kPad = "pad";
/// Elements along k of a block of A or B with one scale, and columns of a block of B.
inline constexpr int64_t kScaleBlock = 128;

struct Shape {
  int64_t m, n, k;
  DType dtype, out;
  bool a_rows, b_rows;  ///< row-major
  std::string gated;    ///< activation of the even columns, or empty
  bool has_factors;     ///< sums may be multiplied by tensors or by other sums
  bool scaled;          ///< blocks of A and B have scales
  int64_t experts;      ///< each with its own B [k, n]; 1: a plain product
  int64_t tokens;       ///< rows of A, which are gathered; 0: A has the rows of C
  int64_t pad;          ///< elements between the end of a line of A or B and the next

  explicit Shape(const Problem& p)
      : m(p.dims.at("M")),
        n(p.dims.at("N")),
        k(p.dims.at("K")),
        dtype(p.dtype),
        out(p.dtypes.at("out")),
        a_rows(p.texts.at("a_layout") == "row"),
        b_rows(p.texts.at("b_layout") == "row"),
        gated(p.texts.at("gated")),
        has_factors(p.texts.at("epilogue").find('[') != std::string::npos || !p.args.empty() || !gated.empty()),
        scaled(p.texts.count("scales") && !p.texts.at("scales").empty()),
        experts(p.dims.count("experts") ? p.dims.at("experts") : 1),
        tokens(p.flags.count("gather") && p.flags.at("gather") ? p.dims.at("tokens") : 0),
        pad(p.dims.count(kPad) ? p.dims.at(kPad) : 0) {}

  int64_t cols() const { return gated.empty() ? n : n / 2; }   ///< of C
  int64_t a_stride() const { return (a_rows ? k : m) + pad; }  ///< elements from one row (column) to the next
  int64_t b_stride() const { return (b_rows ? n : k) + pad; }
  int64_t a_elements() const { return a_stride() * (a_rows ? (tokens > 0 ? tokens : m) : k); }
  int64_t b_elements() const { return b_stride() * (b_rows ? k : experts * n); }
  int64_t k_blocks() const { return (k + kScaleBlock - 1) / kScaleBlock; }  ///< with a scale each
  int64_t n_blocks() const { return (n + kScaleBlock - 1) / kScaleBlock; }
  /// The product of all rows with the B of all experts, beside each other: its elements of a row and of the columns of
  /// the row's expert are those of the grouped product.
  Shape side_by_side() const {
    Shape all = *this;
    all.n *= experts;
    all.experts = 1;
    return all;
  }
  bool operator==(const Shape&) const = default;
};

}  // namespace roofgen::gemm
