// GEMM kernels on the simulator: formats, layouts, alignments and odd sizes against the reference.
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"
#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_kernels_test {
namespace {

struct Case {
  std::string name;
  Gemm gemm;
  Pins pins = {};  ///< of the first kernel
  bool slow = false;
  InputPattern pattern = InputPattern::kNormal;
  std::string variant = "fused";
  Pins rows = {};  ///< of the second
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class GemmKernel : public testing::TestWithParam<Case> {};

TEST_P(GemmKernel, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Case& c = GetParam();
  auto problem = gemm(c.gemm);
  ASSERT_TRUE(problem) << to_string(problem.error());
  auto runs = run({*problem, c.variant, {{"gemm", c.pins}, {"epilogue", c.rows}, {"sum", c.rows}}, c.pattern, {}});
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
  EXPECT_EQ(runs->size(), c.variant == "fused" ? 1u : 2u);
  EXPECT_EQ(runs->back().comparison.rows, static_cast<uint64_t>(c.gemm.M));
  for (const StageRun& r : *runs) EXPECT_EQ(r.binary.spill_bytes, 0) << r.stage;
}

Pins tile(int64_t bm, int64_t bn, int64_t warps_m, int64_t warps_n, Pins more = {}) {
  more.insert({{"BM", bm}, {"BN", bn}, {"warps_m", warps_m}, {"warps_n", warps_n}});
  return more;
}

/// Gated products in two kernels; the second kernel processes pairs of columns stored by the first.
std::vector<Case> gated_in_parts() {
  std::vector<Case> out;
  const auto add = [&](const std::string& name, const std::string& gate, Gemm g, bool slow,
                       const std::string& variant = "unfused", Pins rows = {},
                       InputPattern pattern = InputPattern::kNormal) {
    g.gated = gate;
    out.push_back({"gated_" + variant + "_" + name, std::move(g), {}, slow, pattern, variant, std::move(rows)});
  };
  const std::string linear = "acc * 0.1 + bias[n]",
                    every = "gelu(acc * 0.1 + bias[n]) * scale + row_bias[m] * residual[m,n] + w";
  const std::vector<TensorArg> single{{"w", DType::kFp32, {}}};
  for (const char* gate : {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"}) {
    add(gate, gate, {33, 66, 40, DType::kBf16, linear}, std::string(gate) != "gelu");
    add(std::string(gate) + "_tf32", gate, {33, 66, 40, DType::kTf32, linear}, std::string(gate) != "silu");
  }
  // Output rows at every alignment of their elements, and widths around pairs and groups of columns.
  for (const int64_t n : {2, 4, 6, 14, 16, 62, 70, 130})
    add("n" + std::to_string(n), "silu", {37, n, 40, DType::kFp16, every, "row", "col", "", single}, n != 2 && n != 70);
  // Formats stored between the kernels: fp8 and int8 cannot hold the sums, and fp16 not those of int8.
  for (const auto& [dtype, out_dtype] : {std::pair{DType::kFp8, DType::kBf16}, std::pair{DType::kFp8, DType::kFp8},
                                         std::pair{DType::kFp8, DType::kFp32}, std::pair{DType::kInt8, DType::kBf16},
                                         std::pair{DType::kInt8, DType::kInt8}, std::pair{DType::kInt8, DType::kFp16},
                                         std::pair{DType::kInt8, DType::kFp32}, std::pair{DType::kBf16, DType::kFp8}})
    for (const int64_t n : {66, 64})
      add(std::string(to_string(dtype)) + "_" + to_string(out_dtype) + "_n" + std::to_string(n), "gelu_tanh",
          {50,
           n,
           200,
           dtype,
           dtype == DType::kInt8 ? "acc * scale" : "acc * scale + bias[n]",
           "row",
           "col",
           "",
           {},
           {{"scale", dtype == DType::kInt8 ? 2e-4 : 0.2}},
           {{"out", out_dtype}}},
          n == 64 || size_of(out_dtype) != 1);
  add("int32", "relu", {50, 66, 200, DType::kInt8, "acc", "row", "col", "", {}, {}, {{"out", DType::kInt32}}}, false);
  // Rows in segments, several per CTA, several batches per thread.
  add("segments", "silu", {40, 1010, 40, DType::kBf16, linear}, false, "unfused",
      {{"row_threads", int64_t{8}}, {"vec", int64_t{8}}, {"batch", int64_t{4}}, {"rows_each", int64_t{2}}});
  add("pairs", "silu", {9, 1010, 40, DType::kBf16, linear}, true, "unfused",
      {{"row_threads", int64_t{16}}, {"vec", int64_t{2}}});
  add("integers", "relu", {40, 70, 333, DType::kBf16}, true, "unfused", {}, InputPattern::kIntegers);
  add("special_values", "silu", {130, 70, 40, DType::kBf16, "acc + bias[n]"}, false, "unfused", {},
      InputPattern::kSpecial);
  for (const DType dtype : {DType::kBf16, DType::kTf32, DType::kFp8, DType::kInt8})
    for (const int64_t n : {50, 64})
      add(std::string(to_string(dtype)) + "_n" + std::to_string(n), "silu",
          {40,
           n,
           1100,
           dtype,
           "acc * scale + bias[n]",
           "row",
           "col",
           "",
           {},
           {{"scale", dtype == DType::kInt8 ? 2e-5 : 0.02}}},
          n == 64 || dtype != DType::kBf16, "split_k4");
  return out;
}

std::vector<Case> cases(bool slow) {
  const std::string direct = "direct", staged = "staged", fused = "gelu(acc + bias[n]) * scale + residual[m,n]";
  std::vector<Case> out;
  const auto layouts = {std::pair{"row", "col"}, std::pair{"row", "row"}, std::pair{"col", "col"},
                        std::pair{"col", "row"}};
  for (const auto& [dtype, name] :
       {std::pair{DType::kBf16, "bf16"}, std::pair{DType::kFp16, "fp16"}, std::pair{DType::kTf32, "tf32"},
        std::pair{DType::kFp8, "fp8"}, std::pair{DType::kInt8, "int8"}})
    for (const auto& [a, b] : layouts) {
      const std::string label = std::string(name) + "_" + a + "_" + b;
      out.push_back({label + "_odd", {130, 70, 100, dtype, fused, a, b}, {}, std::string(a) == b});
      out.push_back({label + "_even", {128, 64, 128, dtype, "acc", a, b}, {}, true});
    }
  // Tiles of k entirely beyond the end of K, next to tiles cut by the last row or column.
  for (const auto& [a, b] : layouts)
    out.push_back({std::string("whole_k_") + a + "_" + b,
                   {200, 136, 192, DType::kBf16, "acc", a, b},
                   {},
                   std::string(a) == "row"});
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, std::tuple{17, 9, 5}, std::tuple{127, 65, 33},
                                std::tuple{1, 128, 64}, std::tuple{129, 1, 40}})
    out.push_back({"size_" + std::to_string(m) + "_" + std::to_string(n) + "_" + std::to_string(k),
                   {m, n, k, DType::kBf16, "silu(acc * 0.5 + bias[n])"}});
  // Rows aligned to 16, 8, 4 and 2 bytes, and to 1 byte for 8-bit elements.
  for (const int k : {72, 76, 74, 73})
    for (const auto& [a, b] : {std::pair{"row", "col"}, std::pair{"col", "row"}})
      out.push_back({"aligned_" + std::to_string(k) + "_" + a, {k, k, k, DType::kBf16, "acc", a, b}, {}, k != 73});
  for (const int k : {96, 104, 100, 97})
    out.push_back({"aligned_int8_" + std::to_string(k), {40, 40, k, DType::kInt8, "acc * scale"}, {}, k != 97});
  out.push_back({"block_scales", block_scaled(130, 200, 400)});
  out.push_back({"fp8_fits_registers", {130, 192, 256, DType::kFp8}});
  out.push_back(
      {"every_tensor", {100, 100, 64, DType::kBf16, "alpha * acc + beta * residual[m,n] + bias[n] * row_bias[m]"}});
  out.push_back({"declared",
                 {66,
                  50,
                  64,
                  DType::kFp16,
                  "acc * w[m,n] + c",
                  "row",
                  "col",
                  "",
                  {{"w", DType::kFp32, {"m", "n"}}, {"c", DType::kFp32, {}}}}});
  for (const char* gate : {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"})
    out.push_back({std::string("gated_") + gate,
                   {70, 68, 64, DType::kBf16, "acc * 0.1 + bias[n]", "row", "col", gate},
                   {},
                   std::string(gate) != "silu"});
  out.push_back({"gated_staged",
                 {70, 160, 64, DType::kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"},
                 tile(64, 64, 2, 2, {{"store", staged}})});
  out.push_back(
      {"gated_int32", {70, 68, 64, DType::kInt8, "acc", "row", "col", "silu", {}, {}, {{"out", DType::kInt32}}}});
  out.push_back({"row_norm", {70, 100, 64, DType::kBf16, "acc * rsqrt(mean(acc * acc) + 0.001) * bias[n]"}});
  out.push_back({"row_amax", {70, 33, 64, DType::kFp16, "acc / amax(acc)"}, tile(64, 64, 2, 2)});
  out.push_back({"row_softmax",
                 {70, 256, 64, DType::kBf16, "exp(acc - max(acc)) / sum(exp(acc - max(acc)))"},
                 tile(64, 256, 2, 4, {{"store", staged}})});
  // Every tile and warp shape, both store methods, more stages than steps, groups that do not divide the rows.
  for (const auto& [bm, bn, wm, wn] :
       {std::tuple{64, 32, 4, 1}, std::tuple{64, 64, 2, 2}, std::tuple{128, 64, 4, 1}, std::tuple{64, 128, 1, 4},
        std::tuple{128, 128, 2, 2}, std::tuple{128, 128, 2, 4}, std::tuple{256, 64, 4, 1}, std::tuple{128, 256, 2, 4},
        std::tuple{256, 128, 4, 2}})
    for (const auto& store : {direct, staged})
      out.push_back({"tile_" + std::to_string(bm) + "x" + std::to_string(bn) + "_" + std::to_string(wm) +
                         std::to_string(wn) + "_" + store,
                     {300, 264, 144, DType::kBf16, "acc + bias[n]"},
                     tile(bm, bn, wm, wn, {{"store", store}, {"BK", int64_t{bm == 64 ? 64 : 32}}}),
                     store == direct || bm * bn < 128 * 128});
  for (const int64_t stages : {2, 4, 6})
    out.push_back(
        {"stages_" + std::to_string(stages), {128, 128, 200, DType::kBf16}, {{"stages", stages}}, stages != 6});
  for (const int64_t group : {2, 4, 8})
    out.push_back({"group_" + std::to_string(group),
                   {620, 200, 40, DType::kBf16},
                   tile(64, 64, 2, 2, {{"group", group}}),
                   group != 4});
  out.push_back({"integers", {130, 70, 333, DType::kBf16}, {}, false, InputPattern::kIntegers});
  out.push_back(
      {"special_values", {130, 70, 40, DType::kBf16, "relu(acc + bias[n])"}, {}, false, InputPattern::kSpecial});
  for (Case& c : gated_in_parts()) out.push_back(std::move(c));
  std::erase_if(out, [slow](const Case& c) { return c.slow != slow; });
  return out;
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmKernel, testing::ValuesIn(cases(false)),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(SlowGemm, GemmKernel, testing::ValuesIn(cases(true)),
                         [](const auto& test) { return test.param.name; });

// Tensor cores of sm_89 cut sums of fp8 products off: every tile is promoted to fp32, and without that it fails.
TEST(GemmOnAda, Fp8IsPromoted) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  for (const Gemm& g : {Gemm{70, 200, 4096, DType::kFp8}, block_scaled(70, 200, 1024)}) {
    const auto problem = gemm(g);
    ASSERT_TRUE(problem) << to_string(problem.error());
    Request request{*problem, "fused", {}, InputPattern::kNormal, {}};
    request.arch = 89;
    auto runs = run(request);
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(what_is_wrong(*runs), "");
    EXPECT_EQ(runs->front().binary.spill_bytes, 0);
    if (!g.scales.empty()) continue;
    request.edits = {{"gemm/gemm.cu.jinja", "mma_32_bytes<Element>(sums[i][n],", "mma_32_bytes<Element>(c[i][n],"},
                     {"gemm/gemm.cu.jinja", "promote(c[i], part[i]);", ";"}};
    expect_caught(run(request), Fate::kComparison, 1.9);
  }
}

Result<std::vector<StageRun>> run_variant(const Gemm& g, const std::string& variant) {
  ROOFGEN_TRY(const Problem problem, gemm(g));
  return run({problem, variant, {}, InputPattern::kNormal, {}, true});
}

TEST(GemmVariants, SplitKIsRightAndTheSameTwice) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  // The last slab is short, and K ends within a tile.
  for (const char* gate : {"", "gelu"}) {
    const Gemm problem{70, 50, 2100, DType::kBf16, "gelu(acc * 0.02 + bias[n]) + residual[m,n]", "row", "col", gate};
    std::vector<std::byte> first;
    for (int time = 0; time < 2; ++time) {
      auto runs = run_variant(problem, "split_k4");
      ASSERT_TRUE(runs) << to_string(runs.error());
      ASSERT_EQ(what_is_wrong(*runs), "");
      ASSERT_EQ(runs->size(), 2u);
      EXPECT_EQ((*runs)[0].comparison.rows, 4u * 70);
      EXPECT_EQ(runs->back().comparison.rows, 70u);
      if (time == 0) first = runs->back().bytes.at("C");
      EXPECT_EQ(runs->back().bytes.at("C"), first);
    }
  }
}

TEST(GemmVariants, UnfusedIsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  for (const char* epilogue :
       {"gelu(acc * 0.1 + bias[n]) * scale + residual[m,n]", "acc * rsqrt(mean(acc * acc) + 0.001)"}) {
    auto runs = run_variant({70, 50, 100, DType::kBf16, epilogue}, "unfused");
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(what_is_wrong(*runs), "");
    EXPECT_EQ(runs->size(), 2u);
  }
}

// The largest int8 sums are 4e4 here: they saturate at 127 in int8, and at twice the depth they exceed fp16.
TEST(GemmVariants, TheStoredProductIsNotCutOff) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  for (const DType out : {DType::kInt8, DType::kFp16}) {
    auto runs = run_variant(
        {40, 50, 1000, DType::kInt8, "acc * scale", "row", "col", "", {}, {{"scale", 0.001}}, {{"out", out}}},
        "unfused");
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(what_is_wrong(*runs), "") << to_string(out);
  }
}

// Sums of int8 reach 6e5 here, and the epilogues wrap: fp32 has neither.
TEST(GemmVariants, IntegersOfInt8ProductsWrap) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const TensorArg zero{"zero", DType::kInt8, {"n"}};
  for (const std::string variant : {"fused", "warpgroup", "unfused", "split_k2"})
    for (const char* epilogue :
         {"(acc - zero[n] * row_bias[m]) * 65537 + bias[n]", "-acc * acc // 3 if acc % 7 < m - n else residual[m,n]"}) {
      auto runs = run_variant(
          {40, 64, 512, DType::kInt8, epilogue, "row", "col", "", {zero}, {}, {{"out", DType::kInt32}}}, variant);
      ASSERT_TRUE(runs) << variant << ": " << to_string(runs.error());
      EXPECT_EQ(what_is_wrong(*runs), "") << variant << ": " << epilogue;
    }
}

TEST(GemmVariants, IntegersThatBecomeFloatsAreWarnedOf) {
  const auto warning = [](const char* epilogue, DType out) {
    const auto problem = gemm({40, 64, 512, DType::kInt8, epilogue, "row", "col", "", {}, {}, {{"out", out}}});
    EXPECT_TRUE(problem) << to_string(problem.error());
    return (*find_op("gemm"))->warning(*problem);
  };
  EXPECT_NE(warning("acc * scale", DType::kInt32).find("exact up to 2^24; the output is int32"), std::string::npos);
  EXPECT_EQ(warning("acc + bias[n]", DType::kInt32), "");
  EXPECT_EQ(warning("acc * scale", DType::kBf16), "");
}

TEST(GemmVariants, AreOfferedOnlyWhereTheyApply) {
  const DataFiles files;
  const auto names = [&](const Gemm& g) {
    std::vector<std::string> out;
    const auto problem = gemm(g);
    EXPECT_TRUE(problem) << to_string(problem.error());
    const auto variants = (*find_op("gemm"))->variants(files, *problem);
    EXPECT_TRUE(variants) << to_string(variants.error());
    for (const Variant& v : *variants) out.push_back(v.name);
    return out;
  };
  EXPECT_EQ(names({128, 128, 128}), (std::vector<std::string>{"fused", "warpgroup", "warpgroup_stream_k"}));
  EXPECT_EQ(names({128, 128, 128, DType::kBf16, "relu(acc)"}),
            (std::vector<std::string>{"fused", "unfused", "unfused_warpgroup", "warpgroup", "warpgroup_stream_k"}));
  EXPECT_EQ(names({128, 128, 1024, DType::kBf16, "relu(acc)"}),
            (std::vector<std::string>{"fused", "split_k2", "split_k4", "unfused", "unfused_warpgroup", "warpgroup",
                                      "warpgroup_split_k2", "warpgroup_split_k4", "warpgroup_stream_k"}));
  EXPECT_EQ(names({128, 128, 1024, DType::kBf16, "acc", "row", "col", "silu"}),
            (std::vector<std::string>{"fused", "split_k2", "split_k4", "unfused", "unfused_warpgroup", "warpgroup",
                                      "warpgroup_split_k2", "warpgroup_split_k4", "warpgroup_stream_k"}));
  auto integers = run_variant({64, 64, 1024, DType::kInt8}, "split_k2");
  ASSERT_TRUE(integers) << to_string(integers.error());
  EXPECT_EQ(what_is_wrong(*integers), "");
  auto floats =
      run_variant({64, 64, 1024, DType::kBf16, "acc", "row", "col", "", {}, {}, {{"out", DType::kInt32}}}, "split_k2");
  ASSERT_FALSE(floats);
  EXPECT_NE(floats.error().message.find("out_dtype != 'int32'"), std::string::npos) << floats.error().message;
}

}  // namespace
}  // namespace roofgen::test::gemm_kernels_test
