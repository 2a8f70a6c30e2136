// An attention problem for tests.
#pragma once

#include "tests/kernels/run_kernel.h"

namespace roofgen::test {

using Dims = std::map<std::string, int64_t>;
using Flags = std::map<std::string, bool>;
using Texts = std::map<std::string, std::string>;

struct AttentionCase {
  std::string name;
  Dims dims;
  Flags flags = {};
  Texts texts = {};
  std::vector<TensorArg> args = {};
  double softcap = 0;
  DType dtype = DType::kBf16;
  InputPattern pattern = InputPattern::kNormal;
  std::map<std::string, DType> dtypes = {};
};
inline void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

inline Problem problem_of(const AttentionCase& c) {
  Problem p{"attention", c.dims, c.dtype, c.flags, {}};
  p.texts = c.texts;
  p.args = c.args;
  p.dtypes = c.dtypes;
  if (c.softcap > 0) p.reals["softcap"] = c.softcap;
  auto done = (*find_op("attention"))->complete(p);
  EXPECT_TRUE(done) << to_string(done.error());
  return *done;
}

inline const Flags kLse{{"lse", true}}, kCausal{{"causal", true}}, kCausalLse{{"causal", true}, {"lse", true}};
inline const TensorArg kSlope{"slope", DType::kFp32, {"h"}};

}  // namespace roofgen::test
