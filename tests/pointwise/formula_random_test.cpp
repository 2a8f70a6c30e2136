// Random formulas: the CUDA text in the simulator must agree with evaluate() within its error.
#include <gtest/gtest.h>

#include "runtime/compiler.h"
#include "tests/pointwise/random_formula.h"
#include "tests/pointwise/run_formulas.h"

namespace roofgen::test::formula_random_test {
namespace {

using pointwise::Formula;

constexpr int kBatch = 20;  // formulas in one kernel

void expect_agreement(int count) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC here";
  Tally tally;
  for (int batch = 0; batch < count / kBatch; ++batch) {
    std::vector<Formula> formulas;
    std::vector<std::string> texts;
    for (int i = 0; i < kBatch; ++i) {
      const uint64_t seed = static_cast<uint64_t>(batch * kBatch + i);
      const auto definitions = RandomFormula(seed, i % 3).definitions();
      std::vector<pointwise::Output> outputs;
      std::string text;
      for (const auto& d : definitions) {
        outputs.push_back({d.name, "o" + d.name, i % 4 < 2 ? DType::kBf16 : DType::kFp32});
        text += d.name + " = " + d.text + "; ";
      }
      auto formula = Formula::parse(definitions, outputs, epilogue_vocabulary());
      ASSERT_TRUE(formula) << to_string(formula.error());
      formulas.push_back(*formula);
      texts.push_back(text);
    }
    FormulaRun run{.source = noisy_source(2, 100, static_cast<uint64_t>(batch))};
    const auto outputs = run_formulas(formulas, run);
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    for (int i = 0; i < kBatch; ++i) {
      const std::string wrong =
          compare(formulas[static_cast<size_t>(i)], run, (*outputs)[static_cast<size_t>(i)], &tally);
      EXPECT_EQ(wrong, "") << "formula " << batch * kBatch + i << ": " << texts[static_cast<size_t>(i)] << "\n"
                           << formulas[static_cast<size_t>(i)].scope().at("cuda").str();
    }
  }
  // Error bounds must be tight for most elements; loose bounds would detect nothing.
  EXPECT_GT(tally.tight, tally.elements * 8 / 10) << "of " << tally.elements;
  EXPECT_GT(tally.elements, static_cast<size_t>(count) * 200);
}

TEST(RandomFormulas, AgreeWithTheReference) { expect_agreement(40); }
TEST(SlowRandomFormulas, AgreeWithTheReference) { expect_agreement(500); }

}  // namespace
}  // namespace roofgen::test::formula_random_test
