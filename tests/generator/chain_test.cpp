// Chains: their text, their partitions, and the inputs and outputs of each part.
#include "generator/ops/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "generator/ops/chain_op.h"
#include "generator/ops/rows_formulas.h"

namespace roofgen::chain_test {
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Chain parsed(const std::string& text, DType dtype = DType::kBf16) {
  auto chain = Chain::parse(text, dtype);
  EXPECT_TRUE(chain) << (chain ? "" : to_string(chain.error()));
  return std::move(*chain);
}

/// The whole message with its excerpt.
std::string refused(const std::string& text) {
  auto chain = Chain::parse(text, DType::kBf16);
  if (chain) return "accepted";
  EXPECT_EQ(chain.error().exit, Exit::kUsage);
  return to_string(chain.error());
}

const std::string kFive = "gemm > bias > gelu > residual > rmsnorm";

}  // namespace

TEST(ChainText, LabelsAreUniqueAndTensorsToo) {
  const Chain c = parsed("gemm > bias > gelu > bias > layernorm > (v * 2)");
  std::vector<std::string> labels, tensors;
  for (const ChainStep& s : c.steps()) {
    labels.push_back(s.label);
    for (const TensorArg& t : s.tensors) tensors.push_back(to_string(t));
  }
  EXPECT_THAT(labels, ElementsAre("gemm", "bias", "gelu", "bias2", "layernorm", "map"));
  EXPECT_THAT(tensors, ElementsAre("bias:bf16[n]", "bias2:bf16[n]", "weight:bf16[n]", "shift:bf16[n]"));
}

TEST(ChainText, ErrorsHaveACaret) {
  EXPECT_EQ(refused("gemm > gelo > rmsnorm"),
            "error: --chain: unknown step \"gelo\"; did you mean \"gelu\"?\n"
            "      | gemm > gelo > rmsnorm\n"
            "      |        ^~~~");
  EXPECT_EQ(refused("gemm > bias >"),
            "error: --chain: a step is missing here\n"
            "      | gemm > bias >\n"
            "      |              ^");
  EXPECT_THAT(refused("bias > gemm"), HasSubstr("gemm must be the first step"));
  EXPECT_THAT(refused("gemm > relu(3)"), HasSubstr("relu takes no argument"));
  EXPECT_THAT(refused("gemm > cast(float)"), HasSubstr("bf16, fp16 or fp32 was expected"));
  EXPECT_THAT(refused("gemm > quant > relu"), HasSubstr("quant must be the last step"));
  EXPECT_THAT(refused("gemm > residual(gelu)"), HasSubstr("no step before this one is called \"gelu\""));
  EXPECT_THAT(refused("gemm > bias bias"), HasSubstr("\">\" was expected after bias"));
  EXPECT_THAT(refused("gemm > (v * "), HasSubstr("needs parentheses"));
  EXPECT_THAT(refused("gemm > rmsnorm(-1)"), HasSubstr("an epsilon from 0 to 1 was expected"));
  EXPECT_THAT(refused(""), HasSubstr("a step is missing here"));
  EXPECT_THAT(refused("relu > relu > relu > relu > relu > relu > relu > relu > relu > relu > relu"),
              HasSubstr("at most 10 steps"));
}

TEST(ChainText, DeclaredTensorsLeaveTheChainItsNames) {
  const auto declared = [](const TensorArg& arg) {
    const auto chain = Chain::parse("gemm > gelu > rmsnorm > quant", DType::kBf16, {arg}, 1);
    if (chain) return std::string("accepted");
    EXPECT_EQ(chain.error().exit, Exit::kUsage);
    return to_string(chain.error());
  };
  for (const char* own : {"A", "B", "x", "y", "t1", "t10", "v", "v2", "row_scale"})
    EXPECT_THAT(declared({own, DType::kFp32, {"n"}}), HasSubstr(std::string(own) + " is a name of a chain's own"))
        << own;
  EXPECT_THAT(declared({"w", DType::kFp32, {"n", "m"}}), HasSubstr("[m,n] was expected"));
  EXPECT_EQ(declared({"w", DType::kFp32, {"m", "n"}}), "accepted");
}

TEST(ChainText, AnExpressionIsCheckedAsItWasWritten) {
  const std::string message = refused("gemm > (v * bais[n])");
  EXPECT_THAT(message, HasSubstr("bais"));
  EXPECT_THAT(message, HasSubstr("v * bais[n]\n"));
  EXPECT_THAT(refused("gemm > (v - mean(v))"), HasSubstr("rmsnorm, layernorm, softmax or quant"));
}

TEST(ChainPartitions, AllOfThemAndTheIllegalOnesByName) {
  const Chain c = parsed(kFive);
  const std::vector<Partition> all = partitions(c, 4096, 256);
  ASSERT_EQ(all.size(), 16u);
  size_t illegal = 0;
  std::set<std::string> names;
  for (const Partition& p : all) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    if (p.illegal.empty()) continue;
    ++illegal;
    EXPECT_EQ(p.illegal,
              "a row reduction across CTAs: rmsnorm needs all 4096 columns of a row, a CTA of gemm holds at most 256");
  }
  // Only the kernel of all five steps combines norm and gemm.
  EXPECT_EQ(illegal, 1u);
  EXPECT_EQ(all.front().name, "gemm+bias+gelu+residual+rmsnorm");
  EXPECT_EQ(all.back().name, "gemm | bias | gelu | residual | rmsnorm");
  EXPECT_TRUE(all.back().cut(0));
  EXPECT_FALSE(all.front().cut(0));
}

TEST(ChainPartitions, ANarrowRowFitsTheTile) {
  for (const Partition& p : partitions(parsed(kFive), 256, 256)) EXPECT_EQ(p.illegal, "") << p.name;
}

TEST(ChainPartitions, WithoutAGemmAllAreLegal) {
  for (const Partition& p : partitions(parsed("residual > rmsnorm > quant"), 4096, 256))
    EXPECT_EQ(p.illegal, "") << p.name;
}

TEST(ChainPlan, PartsAndTheirMistakes) {
  const Chain c = parsed(kFive);
  const auto plan = parse_plan(c, "gemm+bias+gelu | residual+rmsnorm");
  ASSERT_TRUE(plan);
  EXPECT_THAT(*plan, ElementsAre(Part{0, 3}, Part{3, 5}));
  const auto wrong = [&](const std::string& text) {
    auto r = parse_plan(c, text);
    return r ? "accepted" : to_string(r.error());
  };
  EXPECT_EQ(wrong("gemm+bias | residual+rmsnorm"),
            "error: --plan: gelu was expected here: a plan keeps the order of the chain\n"
            "      | gemm+bias | residual+rmsnorm\n"
            "      |             ^~~~~~~~");
  EXPECT_THAT(wrong("gemm+bais"), HasSubstr("no step \"bais\"; did you mean \"bias\"?"));
  EXPECT_THAT(wrong("gemm+bias | gelu"), HasSubstr("residual is missing"));
  EXPECT_THAT(wrong("gemm+bias+gelu+residual+rmsnorm+rmsnorm"), HasSubstr("the chain ends with rmsnorm"));
}

TEST(ChainPart, ReadsAndWritesItsNeighboursValues) {
  // A step adds the value of bias again three steps later: a cut in between keeps the value in memory.
  const Chain c = parsed("gemm > bias > gelu > residual(bias) > rmsnorm");
  EXPECT_THAT(c.kept({0, 3}), ElementsAre(1u));
  EXPECT_THAT(c.added({3, 5}), ElementsAre(1u));
  EXPECT_THAT(c.kept({0, 4}), ElementsAre());
  EXPECT_THAT(c.added({2, 5}), ElementsAre());  // its source is the kept value
  const auto outputs = c.outputs({0, 3});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].buffer, "t2");
  EXPECT_EQ(outputs[1].buffer, "t3");
  const auto reader = c.formula({3, 5});
  ASSERT_TRUE(reader) << to_string(reader.error());
  std::vector<std::string> names;
  for (const TensorArg& t : reader->tensors()) names.push_back(to_string(t));
  EXPECT_THAT(names, ElementsAre("t2:bf16[m,n]", "weight:bf16[n]"));
}

TEST(ChainPart, QuantWritesNumbersAndTheScaleOfTheirRow) {
  const Chain c = parsed("rmsnorm > quant(int8)");
  const auto outputs = c.outputs(c.whole());
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].buffer, "row_scale");
  EXPECT_TRUE(outputs[0].per_row);
  EXPECT_EQ(outputs[1].dtype, DType::kInt8);
  EXPECT_TRUE(c.formula(c.whole()));
}

TEST(ChainPart, StepsAreTheOpsOfTheirNames) {
  // The CUDA text is equal up to the names of values, so epsilon and row scale are equal.
  const auto op = [](const rows::Spec& spec, Problem p) {
    p.reals.emplace("eps", spec.eps);
    auto formulas = rows::formulas(spec, p);
    EXPECT_TRUE(formulas) << (formulas ? "" : to_string(formulas.error()));
    return formulas->at("fused");
  };
  const auto value = [](const pointwise::Formula& f, double scale) {
    std::vector<pointwise::Estimate> row;
    for (double v : {1.0, -0.5, 0.25, 0.0}) row.push_back({v * scale, 0});
    const int64_t at = 0;
    std::vector<double> out;
    for (const auto& output : f.evaluate(row, std::span(&at, 1), 0,
                                         [](const TensorArg&, std::span<const int64_t>, int64_t, std::span<double> v) {
                                           std::fill(v.begin(), v.end(), 1.0);
                                         }))
      for (const auto& e : output) out.push_back(e.value);
    return out;
  };
  const auto same = [&](const std::string& chain, const rows::Spec& spec, const Problem& p) {
    const auto formula = parsed(chain, p.dtype).formula({0, 1});
    ASSERT_TRUE(formula) << to_string(formula.error());
    for (double scale : {1.0, 1e-3, 1e-13, 0.0}) {
      auto a = value(*formula, scale), b = value(op(spec, p), scale);
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      EXPECT_EQ(a, b) << chain << " at " << scale;
    }
  };
  same("rmsnorm", rows::kRmsnorm, {"rmsnorm", {}, DType::kBf16, {}, {}});
  same("layernorm", rows::kLayernorm, {"layernorm", {}, DType::kBf16, {{"bias", true}}, {}});
  same("softmax", rows::kSoftmax, {"softmax", {{"cols", 4}}, DType::kBf16, {}, {}});
  // The ops have no form of quant without a preceding norm; a part with quant alone is that of the unfused form.
  Problem quant{"rmsnorm", {}, DType::kBf16, {}, {}};
  quant.texts = {{"quant", "fp8"}, {"quant_scale", "row"}};
  quant.reals["eps"] = 1e-6;
  const auto ops = rows::formulas(rows::kRmsnorm, quant);
  ASSERT_TRUE(ops);
  for (double scale : {1.0, 1e-13, 0.0}) {
    auto a = value(*parsed("quant(fp8)").formula({0, 1}), scale), b = value(ops->at("quantise"), scale);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    EXPECT_EQ(a, b) << scale;
  }
}

/// A filler is used as long as its buffer exists, and its arguments may have ended: here they become something else.
void expect_fillers_that_keep_their_arguments(const Op& op, const Problem& whole) {
  for (const Buffer& buffer : op.buffers(whole)) {
    if (buffer.role != Buffer::Role::kInput) continue;
    std::vector<std::byte> before(4096), after(4096);
    Problem problem = whole;
    std::string name = buffer.name;
    const auto fill = op.filler(problem, InputPattern::kNormal, name);
    fill(0, before);
    problem = Problem{};
    std::fill(name.begin(), name.end(), '?');
    fill(0, after);
    EXPECT_EQ(before, after) << whole.op << ": " << buffer.name;
  }
}

TEST(Fillers, KeepTheirArguments) {
  const auto check = [](const Op& op, const Problem& asked) {
    const auto problem = op.complete(asked);
    ASSERT_TRUE(problem) << to_string(problem.error());
    expect_fillers_that_keep_their_arguments(op, *problem);
  };
  const Chain chain = parsed("gemm > bias > residual > rmsnorm");
  const Problem whole{"chain", {{"M", 128}, {"N", 128}, {"K", 64}}, DType::kBf16, {}, {}};
  for (const std::vector<Part>& plan : {std::vector<Part>{{0, 4}}, {{0, 2}}, {{1, 4}}}) {
    const auto op = *ChainOp::make(chain, plan);
    check(*op, op->problem_of(whole));
  }
  check(**find_op("attention"), {"attention", {{"L", 128}, {"d", 64}}, DType::kBf16, {}, {}});
  check(**find_op("gemm"), {"gemm", {{"M", 128}, {"N", 128}, {"K", 64}}, DType::kBf16, {}, {}});
  check(**find_op("layernorm"), {"layernorm", {{"rows", 64}, {"cols", 128}}, DType::kBf16, {{"bias", true}}, {}});
}

TEST(ChainOp, HasThePatternsOfItsOps) {
  const auto patterns = [](const char* chain, std::vector<Part> plan, DType dtype = DType::kBf16) {
    return (*ChainOp::make(parsed(chain, dtype), std::move(plan)))->patterns({});
  };
  using enum InputPattern;
  EXPECT_THAT(patterns("gemm > bias > rmsnorm", {{0, 2}}), ElementsAre(kIntegers, kExtremes));
  EXPECT_THAT(patterns("gemm > bias > rmsnorm", {{0, 2}, {2, 3}}), ElementsAre(kIntegers, kExtremeRows));
  EXPECT_THAT(patterns("gemm > bias > rmsnorm", {{2, 3}}), ElementsAre(kSpecial, kExtremeRows));
  EXPECT_THAT(patterns("residual > rmsnorm", {{0, 1}, {1, 2}}), ElementsAre(kSpecial, kExtremeRows));
  EXPECT_THAT(patterns("gelu > residual", {{0, 2}}), ElementsAre(kSpecial, kExtremes));
  EXPECT_THAT(patterns("bias > rmsnorm", {{0, 2}}), ElementsAre(kSpecial)) << "a constant row may become noise";
  EXPECT_THAT(patterns("gemm > bias", {{0, 1}, {1, 2}}, DType::kFp16), ElementsAre(kIntegers)) << "may overflow";
}

TEST(ChainPart, CastChangesTheStoredFormat) {
  const Chain c = parsed("gemm > cast(fp32) > relu");
  EXPECT_EQ(c.dtype_before(1), DType::kBf16);
  EXPECT_EQ(c.dtype_before(2), DType::kFp32);
  EXPECT_EQ(parsed("gemm > relu", DType::kFp8).dtype_before(1), DType::kBf16);
}

}  // namespace roofgen::chain_test
