// The dimensions of a GEMM problem.
#pragma once

#include <string>

#include "roofgen/pipeline.h"

namespace roofgen::gemm {

struct Shape {
  int64_t m, n, k;
  DType dtype, out;
  bool a_rows, b_rows;  ///< row-major
  std::string gated;    ///< activation of the even columns, or empty

  explicit Shape(const Problem& p)
      : m(p.dims.at("M")),
        n(p.dims.at("N")),
        k(p.dims.at("K")),
        dtype(p.dtype),
        out(p.dtypes.at("out")),
        a_rows(p.texts.at("a_layout") == "row"),
        b_rows(p.texts.at("b_layout") == "row"),
        gated(p.texts.at("gated")) {}

  int64_t cols() const { return gated.empty() ? n : n / 2; }  ///< of C
  int64_t a_stride() const { return a_rows ? k : m; }         ///< elements from one row (column) to the next
  int64_t b_stride() const { return b_rows ? n : k; }
  bool operator==(const Shape&) const = default;
};

}  // namespace roofgen::gemm
