// A row-op problem with one schedule, for tests.
#pragma once

#include "tests/kernels/run_kernel.h"

namespace roofgen::test {

inline ParamValue n(int64_t x) { return x; }
inline ParamValue text(const char* s) { return std::string(s); }

struct RowsCase {
  std::string op;
  int64_t rows, cols;
  DType dtype = DType::kBf16;
  std::map<std::string, bool> flags = {};
  std::map<std::string, std::string> texts = {};
  std::map<std::string, DType> dtypes = {};
  std::string variant = "fused";
  Pins pins = {};  ///< of every stage except `combine`
  InputPattern pattern = InputPattern::kNormal;
};

inline std::string label(const RowsCase& c) {
  std::string out =
      c.op + "_" + c.variant + "_" + to_string(c.dtype) + "_" + std::to_string(c.rows) + "x" + std::to_string(c.cols);
  for (const auto& [flag, on] : c.flags) out += on ? "_" + flag : "";
  for (const auto& [name, value] : c.texts)
    if (name != "expr") out += "_" + value;
  for (const auto& [name, value] : c.dtypes) out += "_" + name + "_" + to_string(value);
  for (const auto& [name, value] : c.pins) out += "_" + name + "_" + to_string(value);
  if (c.pattern == InputPattern::kSpecial) out += "_special";
  if (c.pattern == InputPattern::kIntegers) out += "_integers";
  return out;
}
inline void PrintTo(const RowsCase& c, std::ostream* out) { *out << label(c); }

inline Result<Request> request_of(const RowsCase& c) {
  Request request;
  Problem problem{c.op, {{"rows", c.rows}, {"cols", c.cols}}, c.dtype, c.flags, {}};
  problem.texts = c.texts;
  problem.dtypes = c.dtypes;
  ROOFGEN_TRY(const Op* op, find_op(c.op));
  ROOFGEN_TRY(request.problem, op->complete(problem));
  request.variant = c.variant;
  request.pattern = c.pattern;
  for (const char* stage :
       {"rmsnorm", "layernorm", "softmax", "map", "add", "norm", "quantise", "partial", "normalise"})
    request.pins[stage] = c.pins;
  return request;
}

inline void expect_right(const RowsCase& c) {
  const auto request = request_of(c);
  ASSERT_TRUE(request) << to_string(request.error());
  expect_right(*request);
}

inline const std::map<std::string, bool> kResidual{{"residual", true}}, kBias{{"bias", true}},
    kBoth{{"bias", true}, {"residual", true}};
inline const std::map<std::string, std::string> kFp8{{"quant", "fp8"}}, kInt8{{"quant", "int8"}};

}  // namespace roofgen::test
