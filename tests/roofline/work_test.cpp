#include "roofline/work.h"

#include <gtest/gtest.h>

#include <tuple>

#include "generator/ops/op.h"

namespace roofgen::work_test {

namespace {

OpWork work(const char* op, const WorkRequest& request) {
  const auto formula = WorkFormula::load(DataFiles(), op);
  EXPECT_TRUE(formula) << to_string(formula.error());
  auto out = formula->evaluate(request);
  EXPECT_TRUE(out) << to_string(out.error());
  return *out;
}

Problem attention(std::map<std::string, int64_t> dims, bool lse) {
  Problem out;
  out.op = "attention";
  out.dims = std::move(dims);
  out.flags["lse"] = lse;
  return out;
}

std::string refusal(const char* op, const WorkRequest& request) {
  const auto formula = WorkFormula::load(DataFiles(), op);
  if (!formula) return formula.error().message;
  const auto out = formula->evaluate(request);
  return out ? "" : out.error().message;
}

/// A user's formula file that takes precedence over the built-in ones.
class OwnFormula : public ::testing::Test {
 protected:
  std::string fault(std::string text) {
    const std::string dir = ::testing::TempDir() + "/own_formula";
    std::system(("mkdir -p " + dir + "/work").c_str());
    std::FILE* file = std::fopen((dir + "/work"
                                        "/mine.json")
                                     .c_str(),
                                 "wb");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    const auto formula = WorkFormula::load(DataFiles({dir}), "mine");
    return formula ? "" : to_string(formula.error());
  }
};

}  // namespace

TEST(Work, EveryFormulaLoadsAndIsNamedAfterItsFile) {
  const DataFiles files;
  const std::vector<std::string> names = WorkFormula::names(files);
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    const auto formula = WorkFormula::load(files, name);
    ASSERT_TRUE(formula) << to_string(formula.error());
    EXPECT_EQ(formula->op(), name);
    EXPECT_FALSE(formula->title().empty());
  }
}

TEST(Work, AttentionCountsAllowedPairsExactly) {
  for (auto [q, kv] : {std::pair{5, 5}, {5, 9}, {9, 5}, {1, 7}, {7, 1}}) {
    const OpWork w = work("attention", {.dims = {{"L", q}, {"kv_len", kv}, {"d", 32}, {"batch", 2}, {"heads", 3}},
                                        .flags = {{"causal", true}}});
    int64_t pairs = 0;
    for (int r = 0; r < q; ++r)
      for (int k = 0; k < kv; ++k) pairs += k <= r + kv - q;
    EXPECT_EQ(w.exps(), 6.0 * static_cast<double>(pairs)) << q << " " << kv;
    EXPECT_EQ(w.mma_flops(), 6.0 * 4 * 32 * static_cast<double>(pairs));
  }
}

TEST(Work, AttentionBytesAreEveryBufferOfTheOpOnce) {
  const Op* op = *find_op("attention");
  const Problem problem = *op->complete(
      attention({{"L", 128}, {"kv_len", 96}, {"d", 64}, {"batch", 2}, {"heads", 6}, {"kv_heads", 2}}, true));
  double bytes = 0;
  for (const Buffer& b : op->buffers(problem)) bytes += static_cast<double>(b.bytes);
  const OpWork w = work("attention", {.dims = problem.dims, .flags = problem.flags});
  EXPECT_EQ(w.dram_bytes(), bytes);
  // The formula and the op, each with its own arithmetic.
  EXPECT_EQ(op->required(problem)->dram_bytes, bytes);
  EXPECT_EQ(op->required(problem)->mma_flops, w.mma_flops());
  EXPECT_EQ(op->required(problem)->exps, w.exps());
}

// The tuner's op and the formula have the same defaults.
TEST(Work, AttentionDefaultsEqualThoseOfTheOp) {
  const Op* op = *find_op("attention");
  for (auto [length, d] : {std::pair{2048, 64}, {1, 256}, {100000, 32}}) {
    const Problem problem = *op->complete(attention({{"L", length}, {"d", d}}, false));
    const OpWork w = work("attention", {.dims = {{"L", length}, {"d", d}}});
    for (const auto& [name, value] : problem.dims) EXPECT_EQ(w.dims.at(name), value) << name;
  }
}

// L=2048, d=64, one head: 8 L^2 bytes for S and P, each written and read, in addition to Q, K, V and O.
TEST(Work, AttentionByPass) {
  const auto one_head = [](int64_t length, int64_t d, int64_t passes, double softmax_flops = 0) {
    return work("attention", {.dims = {{"L", length}, {"d", d}, {"batch", 1}, {"heads", 1}, {"passes", passes}},
                              .softmax_flops = softmax_flops});
  };
  EXPECT_EQ(one_head(2048, 64, 4).dram_bytes(), 8.0 * 2048 * 2048 + 8.0 * 2048 * 64);
  EXPECT_NEAR(one_head(2048, 64, 4).arithmetic_intensity(), 31.03, 0.005);
  EXPECT_EQ(one_head(2048, 64, 6).dram_bytes(), 12.0 * 2048 * 2048 + 8.0 * 2048 * 64);
  EXPECT_NEAR(one_head(2048, 64, 6).arithmetic_intensity(), 20.90, 0.005);
  EXPECT_EQ(one_head(2048, 64, 2).dram_bytes(), 4.0 * 2048 * 2048 + 8.0 * 2048 * 64);
  EXPECT_EQ(one_head(2048, 64, 0).arithmetic_intensity(), 1024);
  EXPECT_EQ(one_head(2048, 64, 4).dram_bytes() / one_head(2048, 64, 0).dram_bytes(), 33);
  // Each step, with five FLOPs per softmax element.
  const OpWork steps = one_head(4096, 128, 4, 5);
  ASSERT_EQ(steps.kernels.size(), 3u);
  EXPECT_NEAR(steps.flops(steps.kernels[0]) / steps.kernels[0].dram_bytes(), 120.47, 0.005);
  EXPECT_EQ(steps.flops(steps.kernels[1]) / steps.kernels[1].dram_bytes(), 1.25);
  EXPECT_NEAR(steps.arithmetic_intensity(), 62.67, 0.01);
}

// Below 128 queries the query heads of a group share the tiles of their K/V head.
TEST(Work, AGroupReadsItsCacheOnce) {
  const auto kernel = [](int64_t length, int64_t heads, int64_t passes, bool causal = false) {
    return work("attention", {.dims = {{"L", length},
                                       {"kv_len", 8192},
                                       {"d", 128},
                                       {"batch", 2},
                                       {"heads", heads},
                                       {"kv_heads", 8},
                                       {"passes", passes}},
                              .flags = {{"causal", causal}}})
        .kernels[0];
  };
  const double cache = 2.0 * 8 * 8192 * 128 * 2;  // bytes of K, and of V
  const auto cache_reads = [&](int64_t length, int64_t heads, bool causal = false) {
    return (kernel(length, heads, 0, causal).l2_bytes - 2.0 * 2 * static_cast<double>(heads * length) * 128 * 2) /
           (2 * cache);
  };
  for (const auto& [length, heads, reads, row_tiles] :
       {std::tuple{1, 8, 1, 1}, {1, 64, 1, 1}, {4, 64, 1, 1}, {16, 64, 1, 1}, {17, 64, 2, 2}, {127, 64, 8, 8}}) {
    EXPECT_NEAR(cache_reads(length, heads), reads, 1e-9) << length << " " << heads;
    EXPECT_EQ(kernel(length, heads, 0).ctas, 2 * 8 * row_tiles * 8192 / 512) << length << " " << heads;
    EXPECT_EQ(kernel(length, heads, 4).ctas, 2 * 8 * row_tiles * 8192 / 128) << length << " " << heads;
    // The tile of the matrix units has 64 rows: each byte of the cache is read once for each, filled or not.
    if (length * heads / 8 <= 64) {
      EXPECT_NEAR(kernel(length, heads, 0).smem_b / 64, 2 * cache, 1) << length << " " << heads;
      EXPECT_NEAR(kernel(length, heads, 4).smem_b / 64, cache, 1) << length << " " << heads;
    }
    const KernelWork scores = kernel(length, heads, 4);
    EXPECT_NEAR(
        scores.l2_bytes,
        reads * cache + scores.exps + 2.0 * 2 * static_cast<double>(heads * length) * (8192 / 256.0 * 128 + 8192), 1)
        << length << " " << heads;
  }
  EXPECT_NEAR(cache_reads(16, 64, true), 1, 1e-9);  // the last query of a tile sees all keys
  EXPECT_EQ(cache_reads(2048, 64), 2048.0 / 256 * 8);
}

TEST(Work, GemmBytesFollowTheFormatOfEachOperand) {
  const std::map<std::string, int64_t> q_b = {{"M", 128}, {"N", 24576}, {"K", 1536}};
  EXPECT_NEAR(work("gemm", {.dims = q_b, .dtypes = {{"b", "fp4"}}}).arithmetic_intensity(), 378.1, 0.05);
  const OpWork nvfp4 = work("gemm", {.dims = q_b, .dtypes = {{"", "nvfp4"}}});
  EXPECT_NEAR(nvfp4.arithmetic_intensity(), 349.7, 0.05);
  EXPECT_STREQ(nvfp4.dtypes.at("out")->name, "bf16");
  EXPECT_EQ(nvfp4.math, "fp4");
  EXPECT_EQ(work("gemm", {.dims = q_b, .dtypes = {{"b", "fp4"}}}).math, "bf16");
  EXPECT_EQ(work("gemm", {.dims = q_b, .dtypes = {{"b", "fp4"}}, .math_dtype = "fp8"}).math, "fp8");
  EXPECT_EQ(work("gemm", {.dims = q_b, .dtypes = {{"", "int8"}}}).accumulate, "int32");
}

// NK/(N+K) for bf16 inputs and outputs; the projections of DeepSeek-R1 with FP4 weights.
TEST(Work, TheLimitOfTheIntensityIsThatOfTheShape) {
  const auto limit = [](int64_t n, int64_t k) {
    return *work("gemm", {.dims = {{"M", 1}, {"N", n}, {"K", k}}, .dtypes = {{"b", "fp4"}}}).ai_limit;
  };
  EXPECT_NEAR(limit(2112, 7168), 1631, 0.5);
  EXPECT_NEAR(limit(24576, 1536), 1446, 0.5);
  EXPECT_NEAR(limit(32768, 512), 504, 0.5);
  EXPECT_NEAR(limit(7168, 16384), 4986, 0.5);
  EXPECT_NEAR(*work("gemm", {.dims = {{"M", 1}, {"N", 512}, {"K", 128}, {"batch", 128}},
                             .dtypes = {{"", "fp8"}, {"out", "fp8"}}})
                   .ai_limit,
              204.8, 0.05);
}

TEST(Work, EpilogueFusionTakesItsTrafficAway) {
  const auto gemm = [](bool unfused) {
    return work("gemm", {.dims = {{"M", 4096}, {"N", 4096}, {"K", 4096}},
                         .flags = {{"bias", true}, {"activation", true}, {"unfused", unfused}}});
  };
  EXPECT_NEAR(gemm(true).arithmetic_intensity(), 585, 0.5);
  EXPECT_NEAR(gemm(false).arithmetic_intensity(), 1365, 0.5);
  EXPECT_EQ(gemm(true).kernels.size(), 3u);
}

TEST(Work, VectorOperatorsCountPerElement) {
  EXPECT_NEAR(work("rmsnorm", {.dims = {{"rows", 65536}, {"cols", 7168}}}).arithmetic_intensity(), 1.0, 1e-4);
  EXPECT_NEAR(work("silu_and_mul", {.dims = {{"rows", 4096}, {"cols", 2048}}}).arithmetic_intensity(), 4 / 6.0, 1e-9);
  EXPECT_NEAR(work("adam", {.dims = {{"params", 1000000}}, .dtypes = {{"grad", "fp16"}}}).dram_bytes(), 26e6, 1);
  EXPECT_NEAR(work("adam", {.dims = {{"params", 1000000}}, .dtypes = {{"grad", "fp32"}}}).dram_bytes(), 28e6, 1);
  const WorkRequest fp32{.dims = {{"elements", 1 << 20}}, .dtypes = {{"", "fp32"}}};
  EXPECT_EQ(work("copy", fp32).flops(), 0);
  EXPECT_EQ(work("scale", fp32).arithmetic_intensity(), 1 / 8.0);
  EXPECT_EQ(work("add", fp32).arithmetic_intensity(), 1 / 12.0);
  EXPECT_EQ(work("triad", fp32).arithmetic_intensity(), 2 / 12.0);
}

TEST(Work, DecodeNeverSharesTheCacheAcrossTheBatch) {
  const auto decode = [](int64_t batch, int64_t kv_heads) {
    return work("attention",
                {.dims =
                     {{"L", 1}, {"kv_len", 4096}, {"d", 128}, {"batch", batch}, {"heads", 32}, {"kv_heads", kv_heads}}})
        .arithmetic_intensity();
  };
  EXPECT_NEAR(decode(1, 32), 1.0, 1e-3);
  EXPECT_NEAR(decode(64, 32), decode(1, 32), 1e-9);
  EXPECT_NEAR(decode(1, 8), 4.0, 0.01);  // four query heads per key head
}

TEST(Work, Refusals) {
  EXPECT_EQ(refusal("gem", {}), "unknown operator \"gem\"; did you mean \"gemm\"?");
  EXPECT_EQ(refusal("gemm", {.dims = {{"M", 1}}}), "gemm needs --N: columns of B and C");
  EXPECT_EQ(refusal("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 0}}}), "gemm: this does not hold: K >= 1 (0 < 1)");
  EXPECT_EQ(refusal("gemm", {.dims = {{"M", -1}, {"N", 1}, {"K", 1}}}), "M is -1; 0 to 2^40 was expected");
  EXPECT_EQ(refusal("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 1}}, .dtypes = {{"b", "fp44"}}}),
            "unknown dtype \"fp44\"; did you mean \"fp4\"?");
  EXPECT_EQ(refusal("gemm", {.dims = {{"batsh", 1}}}), "gemm has no dimension \"batsh\"; did you mean \"batch\"?");
  EXPECT_NE(refusal("attention", {.dims = {{"L", 1}, {"d", 64}, {"passes", 3}}}).find("flash (passes == 0), 2-pass"),
            std::string::npos);
}

TEST_F(OwnFormula, FaultsNameTheirPlace) {
  EXPECT_NE(fault("{").find("mine.json:1:2: error: not valid JSON: the name of a member"), std::string::npos);
  EXPECT_NE(fault(R"({"schema": "roofgen.work/2"})").find("mine.json:1:13: error: schema must be \"roofgen.work/1\""),
            std::string::npos);
  const std::string head =
      R"({"schema": "roofgen.work/1", "op": "mine", "title": "t", "dims": [{"name": "n", "help": "h"}],)";
  EXPECT_NE(fault(head + "\n\"form\": []}").find(":2:2: error: unknown key \"form\"; did you mean \"forms\"?"),
            std::string::npos);
  EXPECT_NE(fault(head + R"("forms": []})").find("\"forms\" must be a list of at least one form"), std::string::npos);
  EXPECT_NE(fault(head + R"("math": ["a"], "forms": []})").find("\"a\" is none of the dtypes"), std::string::npos);
  EXPECT_NE(
      fault(
          head +
          R"("forms": [{"name": "f", "kernels": [{"name": "k", "operands": [{"read": "x", "dtype": "fp32", "elements": "n +"}]}]}]})")
          .find("error: expected a value"),
      std::string::npos);
  EXPECT_NE(
      fault(
          head +
          R"("forms": [{"name": "f", "kernels": [{"name": "k", "operands": [{"read": "x", "dtype": "fp33", "elements": "n"}]}]}]})")
          .find("\"fp33\" is none of the dtypes"),
      std::string::npos);
  EXPECT_EQ(
      fault(
          head +
          R"("forms": [{"name": "f", "kernels": [{"name": "k", "operands": [{"read": "x", "dtype": "fp32", "elements": "n"}]}]}]})"),
      "");
}

TEST(Elementwise, FusionLeavesTheInputsAndTheResult) {
  ElementwiseRequest r{.expression = "relu(x + b)", .rows = 1024, .cols = 1024, .dtype = "fp32", .unfused = false};
  const OpWork fused = *elementwise_work(r);
  EXPECT_EQ(fused.arithmetic_intensity(), 2 / 12.0);
  r.unfused = true;
  const OpWork unfused = *elementwise_work(r);
  ASSERT_EQ(unfused.kernels.size(), 2u);
  EXPECT_EQ(unfused.kernels[0].name, "add");
  EXPECT_EQ(unfused.arithmetic_intensity(), 2 / 20.0);
  EXPECT_NEAR(unfused.dram_bytes() / fused.dram_bytes(), 1.67, 0.005);
  r.expression = "relu(x)";
  EXPECT_EQ(elementwise_work(r)->arithmetic_intensity(), 1 / 8.0);
  r.dtype = "fp16";
  EXPECT_EQ(elementwise_work(r)->arithmetic_intensity(), 1 / 4.0);
}

TEST(Elementwise, ABroadcastOperandIsReadOnce) {
  const OpWork w = *elementwise_work(
      {.expression = "relu(x + bias[n]) * w[m] + x", .rows = 512, .cols = 64, .dtype = "fp32", .unfused = false});
  EXPECT_EQ(w.dram_bytes(), 4.0 * (512 * 64 + 64 + 512 + 512 * 64));  // x is read once, although it is named twice
  EXPECT_NEAR(
      elementwise_work({.expression = "relu(x + b[n])", .rows = 1 << 20, .cols = 64, .dtype = "fp32", .unfused = false})
          ->arithmetic_intensity(),
      0.25, 1e-4);
}

TEST(Elementwise, ConstantsAndScalarsCostNothingToRead) {
  const OpWork w = *elementwise_work(
      {.expression = "cast(x * scale + 2 * 3)", .rows = 8, .cols = 8, .dtype = "fp16", .unfused = true});
  ASSERT_EQ(w.kernels.size(), 2u);
  EXPECT_EQ(w.dram_bytes(), 2.0 * 4 * 64);
}

TEST(Elementwise, Refusals) {
  const auto refusal = [](const char* text) {
    return to_string(elementwise_work({.expression = text, .rows = 8, .cols = 8}).error());
  };
  EXPECT_NE(refusal("relo(x)").find("1:1: error: unknown function \"relo\"; did you mean \"relu\"?"),
            std::string::npos);
  EXPECT_NE(refusal("x % y").find("only + - * / are operations"), std::string::npos);
  EXPECT_NE(refusal("max(x)").find("max takes 2 values"), std::string::npos);
  EXPECT_NE(refusal("bias[k]").find("a tensor is written x, bias[n]"), std::string::npos);
  EXPECT_NE(refusal("x[n] + x[m]").find("x is used with other indices elsewhere"), std::string::npos);
  EXPECT_NE(refusal("bias[n] + 1").find("not a tensor of rows x cols"), std::string::npos);
  EXPECT_NE(refusal("1 + 'a'").find("a number was expected"), std::string::npos);
  EXPECT_NE(refusal("").find("error"), std::string::npos);
}

// All DRAM traffic passes through L2, for every shape.
TEST(Work, L2TrafficIsNeverBelowDramTraffic) {
  const DataFiles files;
  for (int64_t length : {1, 100, 4096})
    for (int64_t passes : {0, 2, 4, 6})
      for (int64_t kv : {64, 8192})
        for (const KernelWork& k :
             work("attention", {.dims = {{"L", length}, {"d", 128}, {"kv_len", kv}, {"passes", passes}}}).kernels)
          EXPECT_GE(k.l2_bytes, k.dram_bytes()) << length << " " << passes << " " << k.name;
  for (const KernelWork& k :
       work("gemm", {.dims = {{"M", 4096}, {"N", 4096}, {"K", 64}}, .flags = {{"residual", true}, {"bias", true}}})
           .kernels)
    EXPECT_GE(k.l2_bytes, k.dram_bytes());
}

TEST(Work, TheLimitNeedsNoCtas) {
  const auto limit = [](bool unfused) {
    return work("gemm", {.dims = {{"M", 1}, {"N", 65536}, {"K", 4096}, {"batch", 64}},
                         .flags = {{"bias", true}, {"unfused", unfused}}})
        .ai_limit;
  };
  ASSERT_TRUE(limit(false) && limit(true));
  EXPECT_LT(*limit(true), *limit(false));
}

TEST(Work, NarrowInputsAreWrittenWide) {
  const auto out = [](const char* op, const char* dtype, std::map<std::string, int64_t> dims) {
    return std::string(work(op, {.dims = std::move(dims), .dtypes = {{"", dtype}}}).dtypes.at("out")->name);
  };
  EXPECT_EQ(out("gemm", "int8", {{"M", 1}, {"N", 1}, {"K", 1}}), "int32");
  EXPECT_EQ(out("grouped_gemm", "int8", {{"M", 1}, {"N", 1}, {"K", 1}, {"experts", 1}}), "int32");
  EXPECT_EQ(out("gemm", "tf32", {{"M", 1}, {"N", 1}, {"K", 1}}), "fp32");
  EXPECT_EQ(out("mla", "mxfp4", {{"batch", 1}, {"kv_len", 1}}), "bf16");
  EXPECT_EQ(out("attention", "int4", {{"L", 1}, {"d", 64}}), "bf16");
  EXPECT_EQ(out("attention", "fp16", {{"L", 1}, {"d", 64}}), "fp16");
}

TEST(Work, ConditionsAreCheckedBeforeDivisions) {
  EXPECT_EQ(refusal("attention", {.dims = {{"L", 1}, {"d", 64}, {"kv_heads", 0}}}),
            "attention: this does not hold: kv_heads >= 1 (0 < 1)");
  EXPECT_EQ(refusal("grouped_gemm", {.dims = {{"M", 4}, {"N", 8}, {"K", 8}, {"experts", 400}}}),
            "grouped_gemm: this does not hold: experts <= M (400 > 4)");
  EXPECT_EQ(refusal("gemm", {.dims = {{"M", int64_t{1} << 44}, {"N", 1}, {"K", 1}}}),
            "M is 17592186044416; 0 to 2^40 was expected");
}

TEST_F(OwnFormula, NegativeWorkIsRefused) {
  const std::string text =
      R"({"schema": "roofgen.work/1", "op": "mine", "title": "t", "dims": [{"name": "n", "help": "h"}], "forms": [{"name": "f", "kernels": [{"name": "k",
    "operands": [{"read": "x", "dtype": "fp32", "elements": "n"}], "vector_flops": "-1.0 * n"}]}]})";
  const auto formula = WorkFormula::parse(text, "mine.json");
  ASSERT_TRUE(formula);
  EXPECT_EQ(formula->evaluate({.dims = {{"n", 4}}}).error().message,
            "mine: vector_flops of k is -4; 0 or more was expected");
}

TEST(Elementwise, TensorNamesDoNotCollideWithIntermediates) {
  const auto bytes = [](const char* text) {
    return elementwise_work({.expression = text, .rows = 64, .cols = 64, .dtype = "fp32", .unfused = true})
        ->dram_bytes();
  };
  EXPECT_EQ(bytes("x * z + t1"), bytes("x * z + q1"));
  EXPECT_EQ(bytes("x * z + y"), bytes("x * z + q1"));
}

}  // namespace roofgen::work_test
