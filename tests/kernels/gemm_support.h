// GEMM problems for tests.
#pragma once

#include "generator/ops/op.h"
#include "tests/kernels/run_kernel.h"

namespace roofgen::test {

struct Gemm {
  int64_t M, N, K;
  DType dtype = DType::kBf16;
  std::string epilogue = "acc";
  std::string a_layout = "row", b_layout = "col", gated = {};
  std::vector<TensorArg> args = {};
  std::map<std::string, double> reals = {{"scale", 0.25}};
  std::map<std::string, DType> dtypes = {};
  std::string scales = {};
};

/// An fp8 product with scales of blocks.
inline Gemm block_scaled(int64_t m, int64_t n, int64_t k, const std::string& epilogue = "acc") {
  Gemm out{m, n, k, DType::kFp8, epilogue};
  out.scales = "block";
  return out;
}

inline Result<Problem> gemm(const Gemm& g) {
  Problem p{"gemm", {{"M", g.M}, {"N", g.N}, {"K", g.K}}, g.dtype, {}, g.reals};
  p.texts = {{"epilogue", g.epilogue}, {"a_layout", g.a_layout}, {"b_layout", g.b_layout}, {"gated", g.gated}};
  if (!g.scales.empty()) p.texts["scales"] = g.scales;
  p.args = g.args;
  p.dtypes = g.dtypes;
  return (*find_op("gemm"))->complete(std::move(p));
}

}  // namespace roofgen::test
