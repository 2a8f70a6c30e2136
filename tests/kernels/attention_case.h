// An attention problem for tests.
#pragma once

#include "tests/kernels/mutant_run.h"

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
  std::string given = {};  ///< flags of `roofgen tune attention` instead of all these but the pattern
};
inline void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

/// The cases of a section of attention_cases.txt.
std::vector<AttentionCase> attention_cases(const std::string& section);

inline Problem problem_of(const AttentionCase& c) {
  if (!c.given.empty()) {
    auto made = run_of("attention " + c.given);
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(made->request.problem);
  }
  Problem p{"attention", c.dims, c.dtype, c.flags, {}};
  p.texts = c.texts;
  p.args = c.args;
  p.dtypes = c.dtypes;
  if (c.softcap > 0) p.reals["softcap"] = c.softcap;
  auto done = (*find_op("attention"))->complete(p);
  EXPECT_TRUE(done) << to_string(done.error());
  return *done;
}

/// A problem in one variant; parameters by stage, the rest is the default schedule.
struct VariantCase {
  AttentionCase problem;
  std::string variant;
  std::map<std::string, Pins> pins = {};
};
inline void PrintTo(const VariantCase& c, std::ostream* out) { *out << c.problem.name; }

inline void expect_right(const VariantCase& c) {
  Request request;
  request.problem = problem_of(c.problem);
  request.variant = c.variant;
  request.pins = c.pins;
  request.pattern = c.problem.pattern;
  expect_right(request);
}

inline const Flags kLse{{"lse", true}}, kCausal{{"causal", true}}, kCausalLse{{"causal", true}, {"lse", true}};
inline const TensorArg kSlope{"slope", DType::kFp32, {"h"}};

}  // namespace roofgen::test
