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
};

inline Result<Problem> gemm(const Gemm& g) {
  Problem p{"gemm", {{"M", g.M}, {"N", g.N}, {"K", g.K}}, g.dtype, {}, g.reals};
  p.texts = {{"epilogue", g.epilogue}, {"a_layout", g.a_layout}, {"b_layout", g.b_layout}, {"gated", g.gated}};
  p.args = g.args;
  p.dtypes = g.dtypes;
  return (*find_op("gemm"))->complete(std::move(p));
}

}  // namespace roofgen::test
