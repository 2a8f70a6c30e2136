// The functions of lib/pointwise.cuh in the simulator: each must be within its own error of the reference over its
// domain and at NaN, infinity and zero, and must fail when one of its constants is changed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/compiler.h"
#include "tests/pointwise/random_formula.h"
#include "tests/pointwise/run_formulas.h"

namespace roofgen::test::formula_kernels_test {
namespace {

using pointwise::Formula;

class FormulaKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC here";
  }
};

Formula epilogue(const std::string& text, DType dtype) {
  auto out = Formula::parse({{"y", text}}, {{"y", "C", dtype}}, epilogue_vocabulary());
  if (!out) ADD_FAILURE() << to_string(out.error());
  return *out;
}

const std::vector<std::string> kFunctions = {"relu", "gelu", "gelu_tanh", "silu",  "sigmoid", "tanh",
                                             "exp",  "log",  "sqrt",      "rsqrt", "abs",     "erf"};

/// Every function and every cast, for outputs of both widths.
std::vector<std::pair<std::string, Formula>> all_functions() {
  std::vector<std::pair<std::string, Formula>> out;
  for (DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const std::string& f : kFunctions) out.emplace_back(f + " " + to_string(dtype), epilogue(f + "(acc)", dtype));
    out.emplace_back("1 / x", epilogue("1 / acc", dtype));
  }
  for (const char* format : {"bf16", "fp16", "fp8", "int8"})
    out.emplace_back(format, epilogue(std::string("cast(acc, \"") + format + "\")", DType::kFp32));
  return out;
}

/// The error of each formula on this source; `only` selects one formula.
std::map<std::string, std::string> wrong_on(const std::vector<float>& source, const std::string& only = "",
                                            std::vector<std::pair<std::string, std::string>> edits = {}) {
  auto all = all_functions();
  if (!only.empty()) std::erase_if(all, [&](const auto& named) { return named.first != only; });
  std::vector<Formula> formulas;
  for (const auto& [name, f] : all) formulas.push_back(f);
  const FormulaRun run{.rows = 1, .cols = static_cast<int>(source.size()), .source = source, .edits = std::move(edits)};
  const auto outputs = run_formulas(formulas, run);
  if (!outputs) return {{"machinery", to_string(outputs.error())}};
  std::map<std::string, std::string> wrong;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::string w = compare(formulas[i], run, (*outputs)[i]); !w.empty()) wrong[all[i].first] = w;
  return wrong;
}

std::vector<float> spread() {
  std::vector<float> out;
  for (int i = 0; i < 128; ++i)
    out.push_back(i % 3 == 0 ? 9.0f * noise(static_cast<uint64_t>(i)) : 2.0f * noise(static_cast<uint64_t>(i)));
  for (int i = 0; i < 12; ++i) out[static_cast<size_t>(i)] = std::ldexp(1.3f, -2 * i);
  for (int i = 0; i < 8; ++i)
    out[static_cast<size_t>(12 + i)] = (i % 2 == 0 ? 1.0f : -1.0f) * (50.3f + 5.1f * static_cast<float>(i));
  return out;
}

TEST_F(FormulaKernels, FunctionsAreWithinTheirErrors) {
  for (const auto& [name, wrong] : wrong_on(spread())) ADD_FAILURE() << name << ": " << wrong;
}

TEST_F(FormulaKernels, NaNInfinityAndTheEndsOfTheRange) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> source = {
      std::nanf(""), kInfinity,     -kInfinity,    0.0f,   -0.0f,   1e30f,   -1e30f,   3e38f,    -3e38f,
      1e-30f,        -1e-30f,       88.0f,         88.8f,  -87.0f,  -104.0f, 448.0f,   449.0f,   464.0f,
      -1000.0f,      0.0009765625f, 0.0029296875f, 127.5f, -128.5f, 2.5f,    65519.0f, 65520.0f, 1.00390625f};
  for (const auto& [name, wrong] : wrong_on(source)) ADD_FAILURE() << name << ": " << wrong;
}

TEST_F(FormulaKernels, AWrongNumberInAFunctionIsSeen) {
  struct Mutant {
    const char *function, *from, *to;
  };
  const Mutant mutants[] = {
      {"gelu_tanh bf16", "0.035677408136300125f", "0.0337f"},
      {"gelu_tanh fp32", "-0.10294324f", "-0.1030f"},
      {"gelu_tanh fp32", "-2.3022082f", "-2.3023f"},
      {"gelu bf16", "0.03700601816f", "0.034f"},
      {"gelu fp32", "0.1055101569f", "0.1055201569f"},
      {"gelu fp32", "fmaf(fabsf(x), 0.35f", "fmaf(fabsf(x), 0.3501f"},
      {"silu bf16", "const float half = 0.5f * x;\n  return fmaf(half, tanh_fast(half), half)",
       "const float half = 0.5f * x;\n  return fmaf(half, tanh_fast(x), half)"},
      {"silu fp32", "return x * sigmoid_exact(x)", "return x * sigmoid_fast(x) * 1.0001f"},
      {"sigmoid bf16", "fmaf(0.5f, tanh_fast(0.5f * x), 0.5f)", "fmaf(0.5f, tanh_fast(0.501f * x), 0.5f)"},
      {"exp bf16", "return ex2(x * kLog2e)", "return ex2(x * 1.4427f)"},
      {"exp fp32", "1.92596299e-8f", "-1.92596299e-8f"},
      {"log bf16", "return r * kLn2", "return r * 0.69315f"},
      {"fp8", "(exponent + 20) << 23", "(exponent + 21) << 23"},
      {"fp8", ">> 23, 121)", ">> 23, 120)"},
      {"int8", "return rintf(", "return truncf("},
      {"bf16", "__uint_as_float(pack2<Bf16>(x, 0.0f) << 16)", "__uint_as_float(__float_as_uint(x) & 0xffff0000u)"},
      {"relu bf16", "float relu_fast(float x) { return max_nan(x, 0.0f)",
       "float relu_fast(float x) { return max_nan(x, 0.001f)"},
  };
  for (const Mutant& m : mutants) {
    const auto wrong = wrong_on(spread(), m.function, {{m.from, m.to}});
    EXPECT_EQ(wrong.count("machinery"), 0u)
        << m.function << ": " << (wrong.count("machinery") ? wrong.at("machinery") : "");
    EXPECT_EQ(wrong.count(m.function), 1u) << m.function << ": " << m.from << " -> " << m.to << " goes unseen";
  }
}

TEST_F(FormulaKernels, ReductionsOfSeveralPhases) {
  std::vector<Formula> formulas;
  const pointwise::Vocabulary v = epilogue_vocabulary();
  const std::vector<std::vector<pointwise::Definition>> texts = {
      {{"c", "acc - mean(acc)"}, {"y", "c * rsqrt(mean(c * c) + 1e-6) * bias[n] + row_bias[m]"}},
      {{"e", "acc + residual[m,n]"}, {"y", "e * rsqrt(mean(e * e) + 1e-6) * bias[n]"}},
      {{"t", "exp(acc - max(acc))"}, {"y", "t / sum(t)"}},
      {{"e", "acc + residual[m,n]"},
       {"z", "e * rsqrt(mean(e * e) + 1e-6) * bias[n]"},
       {"s", "amax(z) / 448"},
       {"y", "cast(z / s, \"fp8\")"}},
  };
  for (const auto& definitions : texts)
    for (int twice = 0; twice < 2; ++twice) {  // with x kept, and not kept
      std::vector<pointwise::Output> outputs{{"y", "C", DType::kFp32}, {definitions[0].name, "first", DType::kFp32}};
      if (definitions.size() == 4) outputs.push_back({"s", "row_scale", DType::kFp32, true});
      auto f = Formula::parse(definitions, outputs, v);
      ASSERT_TRUE(f) << to_string(f.error());
      formulas.push_back(*f);
    }
  FormulaRun run{.source = noisy_source(2, 100, 3)};
  const auto outputs = run_formulas(formulas, run);
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  for (size_t i = 0; i < formulas.size(); ++i)
    EXPECT_EQ(compare(formulas[i], run, (*outputs)[i]), "") << texts[i / 2].back().text;
  // Every formula must detect a row that is one column short.
  run.edits = {{"for (int i = 65; i < kCols; ++i)", "for (int i = 65; i < kCols - 1; ++i)"}};
  const auto short_row = run_formulas(formulas, run);
  ASSERT_TRUE(short_row) << to_string(short_row.error());
  EXPECT_NE(compare(formulas[0], run, (*short_row)[0]), "");
}

}  // namespace
}  // namespace roofgen::test::formula_kernels_test
