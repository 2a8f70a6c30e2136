// The warpgroup kernel of GEMM: its machine code against the published design, its results in the simulator, and
// mutants with one wrong line, each caught by a finding or by the comparison (docs/mutants.md).
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/sass/cubin.h"
#include "runtime/sass/disassembler.h"
#include "tests/kernels/expect_caught.h"
#include "tests/kernels/gemm_support.h"
#include "tests/support/cases.h"

namespace roofgen::test::gemm_warpgroup_test {
namespace {

struct Case {
  std::string name;
  Gemm problem;
  Pins pins;
  int products;  ///< of one batch: between two waits, by one warpgroup
  int registers;
  int batches = 1;  ///< of a stage
  std::string variant = "warpgroup";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Pins pins(std::initializer_list<std::pair<const char*, int64_t>> values) {
  Pins out;
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}

Pins by_tma(Pins out) {
  out["store"] = std::string("tma");
  return out;
}

/// Operands of the epilogue come by TMA.
Pins loading(Pins out) {
  out["load"] = std::string("tma");
  return out;
}

/// Persistent CTAs.
Pins walking(Pins out) {
  out["persistent"] = true;
  return out;
}

class WarpgroupCode : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  static Result<Binary> binary() {
    const Case& c = GetParam();
    ROOFGEN_TRY(const Problem problem, gemm(c.problem));
    ROOFGEN_TRY(std::vector<Compiled> all, compile({problem, c.variant, {{"gemm", c.pins}}, {}, {}}));
    return std::move(all.at(0).binary);
  }
};

TEST_P(WarpgroupCode, HasNoSpillAndNoAdvisory) {
  const auto b = binary();
  ASSERT_TRUE(b) << to_string(b.error());
  EXPECT_EQ(b->arch, "sm_90a");
  EXPECT_EQ(b->spill_bytes, 0);
  EXPECT_EQ(b->stack_bytes, 0);
  EXPECT_TRUE(b->advisories.empty()) << b->advisories.front();
  // With setmaxnreg the launch has the registers of the launch bounds; the consumers take more.
  EXPECT_EQ(b->registers, GetParam().registers);
}

/// The products of one batch follow each other: neither a wait nor a barrier stands between them.
TEST_P(WarpgroupCode, MultipliesBackToBack) {
  if (sass::nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto b = binary();
  ASSERT_TRUE(b) << to_string(b.error());
  const auto cubin = sass::read_cubin(b->cubin);
  ASSERT_TRUE(cubin) << to_string(cubin.error());
  const auto code = sass::disassemble("sm_90a", {cubin->kernels.at(0).code});
  ASSERT_TRUE(code) << to_string(code.error());
  std::vector<int> batches;
  int products = 0;
  for (const sass::Text& i : code->at(0)) {
    const bool product = i.opcode.find("GMMA") != std::string::npos;
    const bool serial = i.opcode.starts_with("WARPGROUP.DEPBAR") || i.opcode.starts_with("WARPGROUP.ARRIVE") ||
                        i.opcode.starts_with("BAR") || i.opcode.starts_with("SYNCS");
    if (product) ++products;
    if (!serial || products == 0) continue;
    batches.push_back(products);
    products = 0;
  }
  EXPECT_EQ(batches, std::vector<int>(static_cast<size_t>(GetParam().batches), GetParam().products));
}

const int64_t kSide = 4096;
TEST_EACH(
    Gemm, WarpgroupCode,
    Case{"published_tile", {kSide, kSide, kSide}, pins({{"BM", 128}, {"BN", 256}, {"groups", 2}}), 4, 168},
    Case{"tall_tile", {kSide, kSide, kSide}, pins({{"BM", 256}, {"BN", 128}, {"groups", 2}}), 8, 168},
    Case{"three_groups", {kSide, kSide, kSide}, pins({{"BM", 192}, {"BN", 160}, {"groups", 3}}), 4, 128},
    Case{"cluster", {kSide, kSide, kSide}, pins({{"BM", 128}, {"BN", 256}, {"cluster", 2}}), 4, 168},
    Case{"cluster_2x2",
         {kSide, kSide, kSide},
         pins({{"BM", 128}, {"BN", 128}, {"cluster", 2}, {"cluster_n", 2}}),
         4,
         168},
    Case{"turned", {kSide, kSide, kSide, DType::kBf16, "acc", "col", "row"}, {}, 4, 168},
    Case{"gelu", {kSide, kSide, kSide, DType::kBf16, "gelu(acc + bias[n])"}, {}, 4, 168},
    Case{"gated", {kSide, kSide, kSide, DType::kBf16, "acc", "row", "col", "silu"}, {}, 4, 168},
    Case{"tf32", {kSide, kSide, kSide, DType::kTf32}, {}, 4, 168},
    Case{"int8", {kSide, kSide, kSide, DType::kInt8}, {}, 4, 168},
    Case{"tma_store", {kSide, kSide, kSide}, by_tma(pins({{"BM", 128}, {"BN", 256}})), 4, 168},
    Case{"tma_store_gelu",
         {kSide, kSide, kSide, DType::kBf16, "gelu(acc + bias[n])"},
         by_tma(pins({{"BM", 128}, {"BN", 256}, {"wide", 4}})),
         4,
         168},
    Case{"tma_store_of_two_tiles_of_rows", {kSide, kSide, kSide}, by_tma(pins({{"BM", 256}, {"BN", 128}})), 8, 168},
    Case{"persistent", {kSide, kSide, kSide}, walking(by_tma(pins({{"BM", 128}, {"BN", 256}, {"stages", 4}}))), 4, 168},
    Case{"persistent_cluster", {kSide, kSide, kSide}, walking(by_tma(pins({{"BN", 256}, {"cluster", 2}}))), 4, 168},
    Case{"persistent_gated",
         {kSide, kSide, kSide, DType::kBf16, "acc", "row", "col", "silu"},
         walking(by_tma(pins({{"BM", 128}, {"BN", 256}}))),
         4,
         168},
    Case{"stream_k",
         {kSide, kSide, kSide},
         by_tma(pins({{"BM", 128}, {"BN", 256}, {"stages", 4}})),
         4,
         168,
         1,
         "warpgroup_stream_k"},
    Case{"loads",
         {kSide, kSide, kSide, DType::kBf16, "acc + residual[m,n]"},
         loading(walking(by_tma(pins({{"BM", 128}, {"BN", 256}, {"stages", 3}})))),
         4,
         168},
    Case{"fp8", {kSide, kSide, kSide, DType::kFp8}, {}, 4, 128},
    Case{"fp8_tall_tile", {kSide, kSide, kSide, DType::kFp8}, pins({{"BM", 256}, {"BN", 128}}), 4, 168, 2},
    Case{"block_scales", block_scaled(kSide, kSide, kSide), pins({{"BM", 256}, {"BN", 128}}), 4, 168, 2},
    Case{"fp8_three_groups",
         {kSide, kSide, kSide, DType::kFp8},
         pins({{"BM", 192}, {"BN", 128}, {"groups", 3}}),
         4,
         128});

// ---- Results ---------------------------------------------------------------------------------------

struct Small {
  std::string name;
  Gemm problem;
  Pins pins = {};
  std::string variant = "warpgroup", stage = "gemm";
  int64_t sms = 132;
};
void PrintTo(const Small& c, std::ostream* out) { *out << c.name; }

Pins narrow(std::initializer_list<std::pair<const char*, int64_t>> values) {
  Pins out = pins(values);
  out.insert({{"BM", int64_t{64}}, {"BN", int64_t{64}}, {"groups", int64_t{1}}, {"stages", int64_t{2}}});
  return out;
}
Pins pingpong(int64_t groups, int64_t wide) {
  Pins out = pins({{"BM", 64}, {"BN", 64}, {"groups", groups}, {"stages", 2}, {"wide", wide}});
  out["pingpong"] = true;
  return out;
}

Pins with(Pins out, std::initializer_list<std::pair<const char*, int64_t>> values) {
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}
Pins turns(Pins out) {
  out["pingpong"] = true;
  return out;
}
/// A cluster of 2 x 2 CTAs.
Pins four_ctas() { return narrow({{"cluster", 2}, {"cluster_n", 2}, {"group", 2}}); }

class WarpgroupGemm : public testing::TestWithParam<Small> {};

TEST_P(WarpgroupGemm, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto problem = gemm(GetParam().problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  Request request{*problem, GetParam().variant, {{GetParam().stage, GetParam().pins}}, InputPattern::kNormal, {}};
  request.sms = GetParam().sms;
  const auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

const DType kBf16 = DType::kBf16;
TEST_EACH(
    Gemm, WarpgroupGemm, Small{"default", {200, 320, 200}}, Small{"narrow", {200, 136, 200}, narrow({})},
    Small{"fp16", {200, 320, 200, DType::kFp16}}, Small{"a_turned", {200, 320, 200, kBf16, "acc", "col", "col"}},
    Small{"b_turned", {200, 320, 200, kBf16, "acc", "row", "row"}},
    Small{"both_turned", {200, 320, 200, kBf16, "acc", "col", "row"}},
    Small{"two_tiles_of_rows", {200, 136, 200}, pins({{"BM", 256}, {"BN", 64}, {"groups", 2}})},
    Small{"three_groups", {200, 200, 200}, pins({{"BM", 192}, {"BN", 96}, {"groups", 3}})},
    Small{"columns_no_power_of_two", {130, 320, 200}, pins({{"BN", 160}})},
    Small{"strip", {130, 320, 200}, narrow({{"wide", 4}})}, Small{"pingpong", {130, 400, 328}, pingpong(2, 4)},
    Small{"pingpong_of_three", {130, 500, 328}, pingpong(3, 8)},
    Small{"cluster", {250, 320, 200}, narrow({{"cluster", 2}, {"group", 2}})},
    Small{"cluster_b_turned",
          {250, 320, 200, kBf16, "acc", "row", "row"},
          pins({{"BM", 64}, {"BN", 128}, {"groups", 1}, {"cluster", 2}, {"group", 2}})},
    Small{"cluster_strip", {250, 320, 328}, narrow({{"cluster", 2}, {"group", 4}, {"wide", 4}})},
    Small{"cluster_outside", {330, 320, 200}, narrow({{"cluster", 2}, {"group", 4}})},
    Small{"tma_store", {200, 320, 200}, by_tma({})}, Small{"tma_store_narrow", {200, 136, 200}, by_tma(narrow({}))},
    Small{"tma_store_strip", {130, 328, 200, DType::kFp16}, by_tma(narrow({{"wide", 4}}))},
    Small{"tma_store_two_slots", {130, 392, 200}, by_tma(pins({{"BM", 64}, {"BN", 128}, {"groups", 1}, {"wide", 4}}))},
    Small{
        "tma_store_three_slabs", {130, 392, 200}, by_tma(pins({{"BM", 64}, {"BN", 192}, {"groups", 1}, {"wide", 2}}))},
    Small{"tma_store_two_tiles_of_rows", {200, 136, 200}, by_tma(pins({{"BM", 256}, {"BN", 64}, {"groups", 2}}))},
    Small{"tma_store_pingpong", {130, 400, 328}, by_tma(pingpong(2, 4))},
    Small{"tma_store_of_a_formula", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}, by_tma({})},
    Small{"loads", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}, loading({})},
    Small{"loads_strip", {130, 328, 200, kBf16, "acc + residual[m,n]"}, loading(by_tma(narrow({{"wide", 4}})))},
    Small{"loads_of_two_tensors",
          {200, 136, 200, kBf16, "acc * w[m,n] + residual[m,n]", "row", "col", "", {{"w", kBf16, {"m", "n"}}}},
          loading(pins({{"BM", 256}, {"BN", 64}, {"groups", 2}}))},
    Small{"loads_fp32",
          {200, 136, 200, kBf16, "acc + r[m,n]", "row", "col", "", {{"r", DType::kFp32, {"m", "n"}}}},
          loading(pins({{"BM", 64}, {"BN", 96}, {"groups", 1}}))},
    Small{"loads_fp8",
          {200, 272, 200, kBf16, "acc + r[m,n]", "row", "col", "", {{"r", DType::kFp8, {"m", "n"}}}},
          loading(pins({{"BM", 128}, {"BN", 256}}))},
    Small{"loads_gated",
          {200, 400, 200, kBf16, "acc * 0.1 + residual[m,n]", "row", "col", "silu"},
          loading(by_tma(pins({{"BM", 128}, {"BN", 256}, {"groups", 2}})))},
    Small{"loads_in_clusters",
          {250, 504, 328, kBf16, "acc + residual[m,n]"},
          loading(by_tma(narrow({{"cluster", 2}, {"cluster_n", 2}, {"group", 2}})))},
    Small{"short_last_group", {330, 200, 72}, narrow({{"group", 4}, {"stages", 3}})},
    Small{"short_last_group_of_strips", {330, 500, 200}, narrow({{"group", 4}, {"wide", 2}})},
    Small{"short_last_group_split_k", {330, 200, 1032}, narrow({{"group", 4}}), "warpgroup_split_k2", "partial"},
    Small{"tma_store_fp8", {200, 320, 336, DType::kFp8}, by_tma({})},
    Small{"tma_store_tf32", {200, 328, 200, DType::kTf32}, by_tma(pins({{"BM", 128}, {"BN", 64}}))},
    Small{"tma_store_int32", {200, 136, 208, DType::kInt8}, by_tma(narrow({}))},
    Small{"tma_store_of_8_bits",
          {200, 272, 336, DType::kFp8, "acc", "row", "col", "", {}, {{"scale", 0.25}}, {{"out", DType::kFp8}}},
          by_tma(pins({{"BM", 64}, {"BN", 128}, {"groups", 1}}))},
    Small{"tma_store_gated",
          {200, 400, 200, kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"},
          by_tma(pins({{"BM", 128}, {"BN", 256}, {"groups", 2}}))},
    Small{"tma_store_gated_tf32",
          {200, 392, 200, DType::kTf32, "acc * 0.1 + bias[n]", "row", "col", "silu"},
          by_tma(pins({{"BM", 64}, {"BN", 128}, {"groups", 1}, {"wide", 2}}))},
    Small{"split_k", {130, 136, 1032}, {}, "warpgroup_split_k2", "partial"},
    Small{"split_k_cluster",
          {250, 136, 1032, kBf16, "gelu(acc * 0.1 + bias[n])"},
          narrow({{"cluster", 2}, {"group", 2}}),
          "warpgroup_split_k4",
          "partial"},
    Small{"split_k_empty_slab", {70, 72, 2104}, narrow({}), "warpgroup_split_k8", "partial"},
    Small{"split_k_gated",
          {70, 72, 1032, kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"},
          narrow({}),
          "warpgroup_split_k2",
          "partial"},
    Small{"split_k_block_scales", block_scaled(70, 200, 2112), narrow({}), "warpgroup_split_k8", "partial"},
    Small{"cluster_of_columns", {130, 392, 200}, narrow({{"cluster_n", 2}, {"BN", 128}})},
    Small{"cluster_2x2", {250, 504, 328}, four_ctas()},
    Small{"cluster_2x2_turned",
          {248, 504, 328, kBf16, "acc", "col", "row"},
          pins({{"BM", 128}, {"BN", 128}, {"groups", 2}, {"cluster", 2}, {"cluster_n", 2}, {"group", 2}})},
    Small{"cluster_4x2_strip",
          {250, 504, 328},
          by_tma(narrow({{"cluster", 4}, {"cluster_n", 2}, {"group", 4}, {"wide", 2}}))},
    Small{"cluster_2x2_pingpong",
          {250, 504, 328},
          with(pingpong(2, 2), {{"cluster", 2}, {"cluster_n", 2}, {"group", 2}})},
    Small{"cluster_of_columns_split_k",
          {130, 248, 1032},
          narrow({{"cluster_n", 2}, {"BN", 64}, {"group", 1}, {"BM", 64}}),
          "warpgroup_split_k2",
          "partial"},
    Small{"cluster_2x2_fp8", block_scaled(250, 504, 656), by_tma(four_ctas())},
    Small{"gelu", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}},
    Small{"gated", {200, 320, 200, kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"}},
    Small{"row_norm", {200, 120, 200, kBf16, "acc * rsqrt(mean(acc * acc) + 0.001)"}},
    Small{"fp8", {200, 320, 336, DType::kFp8}},
    Small{"fp8_two_tiles_of_rows", {200, 136, 336, DType::kFp8}, pins({{"BM", 256}, {"BN", 64}, {"groups", 2}})},
    Small{"block_scales", block_scaled(200, 320, 656)},
    Small{"block_scales_two_tiles_of_rows", block_scaled(200, 136, 336), pins({{"BM", 256}, {"BN", 64}})},
    Small{"block_scales_across_columns", block_scaled(130, 392, 336), pins({{"BM", 128}, {"BN", 192}})},
    Small{"fp8_pingpong", {130, 400, 656, DType::kFp8}, pingpong(2, 4)},
    Small{"fp8_cluster", {250, 320, 656, DType::kFp8}, narrow({{"cluster", 2}, {"group", 2}})},
    Small{"odd_columns", {70, 137, 200}}, Small{"one_step", {70, 136, 24}});

Small of_few_ctas(std::string name, Gemm problem, Pins pins, int64_t sms, const std::string& variant = "warpgroup") {
  return {std::move(name), std::move(problem), walking(std::move(pins)), variant, "gemm", sms};
}
constexpr const char* kStreamK = "warpgroup_stream_k";
TEST_EACH(Persistent, WarpgroupGemm, of_few_ctas("even", {192, 256, 200}, narrow({}), 4),
          of_few_ctas("uneven", {250, 320, 200}, narrow({}), 3), of_few_ctas("one_cta", {130, 136, 200}, narrow({}), 1),
          of_few_ctas("short_last_group", {250, 320, 200}, narrow({{"group", 4}}), 3),
          of_few_ctas("short_last_group_of_one", {330, 200, 72}, narrow({{"group", 4}, {"stages", 3}}), 5),
          of_few_ctas("two_groups", {300, 320, 328}, pins({{"BM", 128}, {"BN", 64}, {"groups", 2}, {"stages", 3}}), 4),
          of_few_ctas("tma_store", {250, 392, 200}, by_tma(narrow({{"BN", 128}})), 3),
          of_few_ctas("gelu", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}, by_tma(narrow({})),
                      3),
          of_few_ctas("loads", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"},
                      loading(by_tma(narrow({}))), 3),
          of_few_ctas("loads_two_groups", {300, 320, 328, kBf16, "acc + residual[m,n]"},
                      loading(pins({{"BM", 128}, {"BN", 128}, {"groups", 2}, {"stages", 3}})), 4),
          of_few_ctas("row_norm", {330, 64, 200, kBf16, "acc * rsqrt(mean(acc * acc) + 0.001)"}, narrow({}), 2),
          of_few_ctas("taking_turns", {250, 320, 328}, turns(narrow({{"groups", 2}})), 3),
          of_few_ctas("three_take_turns", {250, 320, 328}, by_tma(turns(narrow({{"groups", 3}}))), 3),
          of_few_ctas("cluster", {250, 320, 200}, narrow({{"cluster", 2}, {"group", 2}}), 5),
          of_few_ctas("cluster_outside", {330, 320, 200}, narrow({{"cluster", 2}, {"group", 4}}), 4),
          of_few_ctas("cluster_2x2", {330, 504, 328}, by_tma(four_ctas()), 9),
          of_few_ctas("cluster_2x2_turns", {250, 504, 328}, turns(with(four_ctas(), {{"groups", 2}})), 4),
          of_few_ctas("fp8", {250, 320, 656, DType::kFp8}, narrow({}), 3),
          of_few_ctas("block_scales", block_scaled(250, 320, 656), narrow({}), 3));
TEST_EACH(StreamK, WarpgroupGemm, of_few_ctas("uneven", {250, 320, 328}, narrow({}), 3, kStreamK),
          of_few_ctas("one_round_and_a_part", {130, 200, 656}, narrow({}), 7, kStreamK),
          of_few_ctas("two_groups", {300, 320, 328}, pins({{"BM", 128}, {"BN", 64}, {"groups", 2}, {"stages", 3}}), 4,
                      kStreamK),
          of_few_ctas("long_k", {130, 200, 2056}, narrow({}), 5, kStreamK),
          of_few_ctas("nothing_left", {192, 256, 200}, narrow({}), 4, kStreamK),
          of_few_ctas("tma_store", {250, 392, 328}, by_tma(narrow({})), 5, kStreamK),
          of_few_ctas("gelu", {200, 320, 328, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}, narrow({}), 3,
                      kStreamK),
          of_few_ctas("taking_turns", {250, 320, 328}, turns(narrow({{"groups", 2}})), 3, kStreamK),
          of_few_ctas("int8", {250, 320, 656, DType::kInt8}, narrow({}), 3, kStreamK),
          of_few_ctas("block_scales", block_scaled(250, 320, 656), narrow({}), 3, kStreamK));

void expect_random_shapes_right(int rounds) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  std::mt19937 random(31);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < rounds; ++round) {
    const Gemm shape{pick(1, 420), 8 * pick(1, 50), 8 * pick(1, 60)};
    Pins pins = walking(narrow({{"group", int64_t{1} << pick(0, 2)}, {"stages", pick(2, 3)}}));
    if (pick(0, 1)) pins = by_tma(std::move(pins));
    if (pick(0, 2) == 0) pins = turns(with(std::move(pins), {{"groups", 2}}));
    if (shape.K < 256) pins["stages"] = int64_t{2};
    const int64_t sms = pick(1, 9), tiles = (shape.M + 63) / 64 * ((shape.N + 63) / 64);
    Request request{
        *gemm(shape), round % 2 && tiles > sms ? kStreamK : "warpgroup", {{"gemm", pins}}, InputPattern::kNormal, {}};
    request.sms = sms;
    request.order = static_cast<uint64_t>(round);
    const auto runs = run(request);
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(what_is_wrong(*runs), "") << shape.M << " x " << shape.N << " x " << shape.K << " on " << request.sms;
  }
}

TEST(WarpgroupPersistent, RandomShapesAreRight) { expect_random_shapes_right(6); }
TEST(SlowWarpgroupPersistent, RandomShapesAreRight) { expect_random_shapes_right(16); }

/// The bytes of C for several orders of CTAs and warps: their number of different values.
Result<size_t> different_results(const std::vector<Edit>& edits) {
  std::set<std::vector<std::byte>> results;
  for (uint64_t order = 0; order < 4; ++order) {
    ROOFGEN_TRY(Problem problem, gemm({130, 136, 1160, DType::kTf32}));
    Request request{std::move(problem), kStreamK, {{"gemm", walking(narrow({}))}}, InputPattern::kNormal, edits};
    request.sms = 7;
    request.order = order;
    request.keep_bytes = true;
    ROOFGEN_TRY(std::vector<StageRun> runs, run(request));
    if (const std::string wrong = what_is_wrong(runs); !wrong.empty()) return Error{Exit::kFailed, wrong};
    results.insert(runs.at(0).bytes.at("C"));
  }
  return results.size();
}

TEST(WarpgroupStreamK, IsReproducibleToTheBit) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto count = different_results({});
  ASSERT_TRUE(count) << to_string(count.error());
  EXPECT_EQ(*count, 1u);
}

/// The staging area of a store by TMA has no bank conflicts, and C is written once, in full sectors.
TEST(WarpgroupStore, ByTmaHasNoBankConflicts) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto problem = gemm({256, 512, 128});
  ASSERT_TRUE(problem) << to_string(problem.error());
  const auto runs = run({*problem,
                         "warpgroup",
                         {{"gemm", by_tma(pins({{"BM", 128}, {"BN", 256}, {"groups", 2}, {"stages", 2}}))}},
                         InputPattern::kNormal,
                         {}});
  ASSERT_TRUE(runs) << to_string(runs.error());
  ASSERT_EQ(what_is_wrong(*runs), "");
  const Counts& c = runs->at(0).counts;
  EXPECT_GT(c.smem_wavefronts, 0u);
  EXPECT_EQ(c.smem_wavefronts, c.smem_ideal_wavefronts);
  EXPECT_EQ(32 * c.l2_write_sectors, 256u * 512 * 2);
  EXPECT_EQ(c.global_store, 4u * 8 * 4);  // copies: CTAs, warps, slabs
}

// ---- Mutants ---------------------------------------------------------------------------------------

struct Mutant {
  const char *name, *file, *from, *to;
  Pins pins = narrow({});
  CaughtBy by = CaughtBy::kFinding;
  Gemm problem = {250, 400, 328};
  std::string variant = "warpgroup", stage = "gemm";
  int64_t sms = 132;
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class WarpgroupMutants : public testing::TestWithParam<Mutant> {};

TEST_P(WarpgroupMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  const auto problem = gemm(m.problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  Request request{*problem, m.variant, {{m.stage, m.pins}}, InputPattern::kNormal, {{m.file, m.from, m.to}}};
  request.sms = m.sms;
  if (m.variant == kStreamK) request.order = 1;  // of CTAs that share counters any order may show the fault
  expect_caught(run(request), m.by, 1.9);
}

const Gemm kEvenTiles = {250, 504, 328};
const Gemm kSplit = {70, 72, 2104};
const Gemm kScaled = block_scaled(250, 400, 656);
const Gemm kFp8 = {250, 400, 656, DType::kFp8}, kLongFp8 = {70, 200, 16384, DType::kFp8};
constexpr const char *kKernel = "gemm/warpgroup.cu.jinja", *kEpilogue = "gemm/epilogue.cuh.jinja",
                     *kWgmma = "lib/wgmma.cuh", *kBarrier = "lib/barrier.cuh", *kPromote = "lib/promote.cuh",
                     *kStage = "lib/tensor_stage.cuh", *kWalk = "lib/tile_walk.cuh", *kParts = "lib/tile_parts.cuh",
                     *kSet = "{% set clustered = cluster * cluster_n > 1 %}";
TEST_EACH(
    Gemm, WarpgroupMutants,
    Mutant{"tile_not_awaited", kKernel, "barrier_wait(full + 8 * place.stage, place.parity);", ""},
    Mutant{"wrong_phase", kKernel, "barrier_wait(full + 8 * place.stage, place.parity);",
           "barrier_wait(full + 8 * place.stage, place.parity ^ 1);"},
    Mutant{"stage_overwritten", kKernel, "barrier_wait(empty + 8 * place.stage, place.parity ^ 1);", ""},
    Mutant{"too_few_bytes_expected", kKernel, "barrier_arrive_expect(landed, kStageBytes);",
           "barrier_arrive_expect(landed, kABytes);"},
    Mutant{"too_many_bytes_expected", kKernel, "barrier_arrive_expect(landed, kStageBytes);",
           "barrier_arrive_expect(landed, kStageBytes + 16);"},
    Mutant{"stage_never_released", kKernel, "if (lane == 0) barrier_arrive(empty + 8 * stage);", ""},
    Mutant{"released_too_early", kKernel, "if (step > 0) release(reading);", "release(place.stage);"},
    Mutant{"batch_not_awaited", kKernel, "wgmma_wait<1>();", ""},
    Mutant{"last_batch_not_awaited", kKernel, "{% if not promoted %}\n    wgmma_wait<0>();", "{% if not promoted %}\n"},
    Mutant{"fence_dropped", kKernel, "hold(c[i]);\n      wgmma_fence();", "hold(c[i]);\n"},
    Mutant{"step_of_a", kKernel, "kAStep = {{ 2048 if a_turned else 32 }}", "kAStep = {{ 2048 if a_turned else 64 }}",
           narrow({}), CaughtBy::kEither},
    Mutant{"step_of_b", kKernel, "kBStep = {{ 2048 if b_turned else 32 }}", "kBStep = {{ 2048 if b_turned else 16 }}",
           narrow({}), CaughtBy::kEither},
    Mutant{"swizzle_of_64_bytes", kWgmma, "kSwizzle128 = 1ull << 62", "kSwizzle128 = 2ull << 62", narrow({}),
           CaughtBy::kEither},
    Mutant{"no_swizzle", kWgmma, "kSwizzle128 = 1ull << 62", "kSwizzle128 = 0ull << 62", narrow({}), CaughtBy::kEither},
    Mutant{"rows_of_eight_apart", kWgmma, "int stride = 1024", "int stride = 512", narrow({}), CaughtBy::kEither},
    Mutant{"sum_not_started_from_zero", kKernel, "step > 0 || k > 0);", "true);", narrow({}), CaughtBy::kEither},
    Mutant{"other_cta_not_awaited", kKernel, "kWarps * kReaders);  // {{", "kWarps);  // {{",
           narrow({{"cluster", 2}, {"group", 2}}), CaughtBy::kEither},
    Mutant{"stage_of_the_other_cta_not_released", kKernel, "barrier_arrive_at(empty + 8 * stage, lane);",
           "barrier_arrive_at(empty + 8 * stage, rank);", narrow({{"cluster", 2}, {"group", 2}})},
    Mutant{"stage_released_to_the_diagonal", kKernel, "(lane % kClusterM == rank_m || lane / kClusterM == rank_n)",
           "(lane % kClusterM != rank_m || lane / kClusterM == rank_n)", four_ctas(), CaughtBy::kEither, kEvenTiles},
    Mutant{"both_load_the_same_half", kKernel, "b_part = rank_m * (BN / kClusterM);", "b_part = 0;",
           narrow({{"cluster", 2}, {"group", 2}}), CaughtBy::kEither},
    Mutant{"both_load_the_same_rows", kKernel, "a_part = rank_n * (BM / kClusterN)", "a_part = 0",
           narrow({{"cluster_n", 2}}), CaughtBy::kEither, kEvenTiles},
    Mutant{"part_of_a_for_the_other_row", kKernel, "a_for |= 1 << (rank_m + kClusterM * n);",
           "a_for |= 1 << (1 - rank_m + kClusterM * n);", four_ctas(), CaughtBy::kEither, kEvenTiles},
    Mutant{"part_of_b_for_the_other_column", kKernel, "<< (kClusterM * rank_n);", "<< (kClusterM * (1 - rank_n));",
           four_ctas(), CaughtBy::kEither, kEvenTiles},
    Mutant{"part_of_a_at_the_wrong_place", kKernel, "rank_n * (kABytes / kClusterN)", "rank_m * (kABytes / kClusterN)",
           four_ctas(), CaughtBy::kEither, kEvenTiles},
    Mutant{"a_only_for_itself", kKernel, "a_for |= 1 << (rank_m + kClusterM * n);", "a_for = 1 << rank;",
           narrow({{"cluster_n", 2}}), CaughtBy::kEither, kEvenTiles},
    Mutant{"barriers_not_fenced", kKernel, "    barrier_init_fence();\n", "", narrow({{"cluster", 2}, {"group", 2}})},
    Mutant{"cta_ends_early", kKernel,
           "  cluster_sync();  // others arrive at barriers of this CTA, which must not end before", "",
           narrow({{"cluster", 2}, {"group", 2}})},
    // A staging row of 256 bytes is longer than a row of A: the area of one consumer covers tiles of the other.
    Mutant{"staging_over_the_ring", kEpilogue,
           "sync_warps();  // all warps have read their tiles; shared memory becomes the staging area", "",
           pins({{"BM", 128}, {"BN", 128}, {"groups", 2}, {"stages", 2}})},
    Mutant{"one_arrival_too_many", kKernel, "barrier_init(empty + 8 * s, kWarps * kReaders);",
           "barrier_init(empty + 8 * s, kWarps * kReaders + 1);"},
    Mutant{"ring_one_stage_short", kBarrier, "if (++stage == kStages) stage = 0, parity ^= 1;",
           "if (++stage == kStages) stage = 0;"},
    Mutant{"turn_not_awaited", kKernel, "if (turn > 0) named_barrier(kFirstTurn + consumer, 256);", "", pingpong(2, 4),
           CaughtBy::kEither},
    Mutant{"turn_not_passed", kKernel,
           "if (!walk.is_last()) named_barrier_arrive(kFirstTurn + (consumer + 1) % kGroups, 256);", "",
           pingpong(2, 4)},
    Mutant{"stages_of_the_other_consumer", kKernel, "place.advance(walk.steps);", "", pingpong(2, 4),
           CaughtBy::kEither},
    Mutant{"producer_ends_early", kKernel, "step < walk.first + walk.steps; ++step",
           "step < walk.first + walk.steps - 1; ++step"},
    Mutant{"tile_of_another_column", kKernel, "const int n0 = first_n + walk.tile * BN;", "const int n0 = first_n;",
           narrow({{"wide", 4}}), CaughtBy::kEither},
    Mutant{"slab_of_another_part", kKernel, "k0 = blockIdx.z * k_per_split,", "k0 = blockIdx.z * kTileK,", narrow({}),
           CaughtBy::kComparison, kSplit, "warpgroup_split_k8", "partial"},
    Mutant{"slabs_overlap", kKernel, "min(k_per_split, K - k0)", "K - k0", narrow({}), CaughtBy::kComparison, kSplit,
           "warpgroup_split_k8", "partial"},
    Mutant{"empty_slab_not_written", kKernel, "max(1, ceil_div(min(k_per_split, K - k0), kTileK))",
           "ceil_div(min(k_per_split, K - k0), kTileK)", narrow({}), CaughtBy::kEither, kSplit, "warpgroup_split_k8",
           "partial"},
    Mutant{"slabs_at_one_address", kEpilogue, "blockIdx.z * (static_cast<long long>(M) * cols)", "0", narrow({}),
           CaughtBy::kFinding, kSplit, "warpgroup_split_k8", "partial"},
    Mutant{"scales_of_the_first_slab", kKernel, "k_blocks, min(k0 / kTileK + walk.first + step + 1, k_blocks - 1));",
           "k_blocks, min(step + 1, k_blocks - 1));", narrow({}), CaughtBy::kComparison, block_scaled(70, 200, 2112),
           "warpgroup_split_k8", "partial"},
    Mutant{"staging_not_visible_to_tma", kStage, "async_proxy_fence();", "", by_tma(narrow({}))},
    Mutant{"staging_of_other_lanes_not_awaited", kStage, "async_proxy_fence();\n    __syncwarp();",
           "async_proxy_fence();", by_tma(narrow({}))},
    Mutant{"staging_overwritten", kStage, "if (lane == 0) tensor_store_wait<kSlots - 1>();", "",
           by_tma(narrow({{"wide", 4}}))},
    Mutant{"slot_overwritten", kStage, "tensor_store_wait<kSlots - 1>();", "tensor_store_wait<kSlots>();",
           by_tma(pins({{"BM", 64}, {"BN", 128}, {"groups", 1}, {"stages", 2}, {"wide", 4}}))},
    Mutant{"cta_ends_before_its_copies", kKernel,
           "if (lane == 0) tensor_store_wait<0>();  // shared memory must outlast the copies from it", "",
           by_tma(narrow({}))},
    Mutant{"stmatrix_without_swizzle", kStage, "(matrix / 2 ^ row % 8) * 16", "(matrix / 2) * 16", by_tma(narrow({})),
           CaughtBy::kComparison},
    Mutant{"stmatrix_of_tiles_exchanged", kStage, "(matrix / 2 ^ row % 8) * 16", "(1 - matrix / 2 ^ row % 8) * 16",
           by_tma(narrow({})), CaughtBy::kComparison},
    Mutant{"stmatrix_rows_exchanged", kStage, "words[0][0], words[0][1],", "words[0][1], words[0][0],",
           by_tma(narrow({})), CaughtBy::kComparison},
    Mutant{"pairs_without_swizzle",
           kStage,
           "(byte / 16 ^ row) * 16",
           "byte / 16 * 16",
           by_tma(narrow({{"BN", 128}})),
           CaughtBy::kComparison,
           {250, 400, 328, DType::kBf16, "acc", "row", "col", "silu"}},
    Mutant{"pairs_of_the_upper_rows",
           kStage,
           "half * 1024",
           "0",
           by_tma(narrow({{"BN", 128}})),
           CaughtBy::kEither,
           {250, 400, 328, DType::kBf16, "acc", "row", "col", "silu"}},
    Mutant{"slab_of_the_next_columns", kEpilogue, "n0 + 8 * (j + 1 - Stage::kTiles)", "n0 + 8 * (j + 1)",
           by_tma(narrow({})), CaughtBy::kEither},
    Mutant{"part_not_promoted", kKernel, "promote(c[i], part{{", "if (step == 0) promote(c[i], part{{", narrow({}),
           CaughtBy::kComparison, kFp8},
    Mutant{"scale_of_the_next_k", kKernel, "k_blocks, min(k0 / kTileK + walk.first + step + 1, k_blocks - 1));",
           "k_blocks, min(k0 / kTileK + walk.first + step + 2, k_blocks - 1));", narrow({}), CaughtBy::kComparison,
           kScaled},
    Mutant{"scale_of_the_first_k", kKernel, "k_blocks, min(k0 / kTileK + walk.first + step + 1, k_blocks - 1));",
           "k_blocks, 0);", narrow({}), CaughtBy::kComparison, kScaled},
    Mutant{"scale_of_the_first_columns", kKernel, "row0, n0, M, N, k_blocks, min(k0 / kTileK + walk.first + step",
           "row0, 0, M, N, k_blocks, min(k0 / kTileK + walk.first + step", narrow({}), CaughtBy::kComparison, kScaled},
    Mutant{"scale_of_columns_of_half_the_width", kPromote, "N - 1) / 128 *", "N - 1) / 64 % ((N + 127) / 128) *",
           narrow({}), CaughtBy::kComparison, kScaled},
    Mutant{"scale_of_the_other_half_of_rows", kPromote, "fmaf_rn(scale[e / 2]", "fmaf_rn(scale[e % 2]", narrow({}),
           CaughtBy::kComparison, kScaled},
    Mutant{"scale_of_the_first_row", kPromote, "row + kTileRows * i + 8 * h, M - 1)", "row / 16 * 16, M - 1)",
           narrow({}), CaughtBy::kComparison, kScaled},
    Mutant{"one_scale_missing", kPromote, "row_scale[1] * col_scale[block]", "row_scale[1]", narrow({}),
           CaughtBy::kComparison, kScaled},
    Mutant{"part_promoted_twice", kKernel, "moved(b_tile, k * kBStep), k > 0);",
           "moved(b_tile, k * kBStep), step > 0 || k > 0);", narrow({}), CaughtBy::kEither, kFp8},
    Mutant{"never_promoted", kKernel, kSet, "{% set clustered = cluster * cluster_n > 1 %}{% set promoted = false %}",
           narrow({}), CaughtBy::kComparison, kLongFp8},
    Mutant{"last_products_missing", kKernel, "multiply(part, moved(a_tile,",
           "if (k < 3 || step + 1 < steps) multiply(part, moved(a_tile,", narrow({}), CaughtBy::kComparison, kLongFp8},
    Mutant{"part_promoted_in_flight", kKernel, "hold(part);\n        wgmma_wait<0>();", "hold(part);", narrow({}),
           CaughtBy::kFinding, kFp8},
    Mutant{"stage_released_before_the_part_is_complete", kKernel,
           "wgmma_commit();\n        hold(part);\n        wgmma_wait<0>();\n        hold(part);\n"
           "        if (i == MT - 1) release(place.stage);",
           "if (i == MT - 1) release(place.stage);\n        wgmma_commit();\n        hold(part);\n"
           "        wgmma_wait<0>();\n        hold(part);",
           narrow({}), CaughtBy::kFinding, kFp8});

Mutant of_few_ctas(const char* name, const char* file, const char* from, const char* to, Pins pins = narrow({}),
                   CaughtBy by = CaughtBy::kEither, const std::string& variant = "warpgroup",
                   Gemm problem = {250, 320, 328}) {
  return {name, file, from, to, walking(std::move(pins)), by, std::move(problem), variant, "gemm", 3};
}
Mutant of_parts(const char* name, const char* file, const char* from, const char* to, CaughtBy by = CaughtBy::kEither) {
  return of_few_ctas(name, file, from, to, narrow({}), by, kStreamK);
}
TEST_EACH(Persistent, WarpgroupMutants,
          of_few_ctas("last_group_as_high_as_the_others", kWalk, "min(kGroup, rows - above)", "kGroup",
                      narrow({{"group", 8}})),
          of_few_ctas("next_tile_instead_of_the_next_wave", kWalk, "(tile += gridDim.x) < tiles", "++tile < tiles"),
          of_few_ctas("last_tile_left_out", kWalk, "(tile += gridDim.x) < tiles", "(tile += gridDim.x) < tiles - 1"),
          of_few_ctas("consumer_and_producer_disagree", kKernel, "  {{ start_walk() }}\n#pragma unroll 1\n{% if",
                      "  {{ start_walk() }}\n  walk.take();\n#pragma unroll 1\n{% if"),
          of_few_ctas("phase_not_carried_to_the_next_tile", kKernel, "{% else %}\n  while (walk.take()) {\n{% endif %}",
                      "{% else %}\n  while (walk.take()) {\n    place = {};\n{% endif %}"),
          of_few_ctas("turn_skips_no_stages", kKernel, "place.advance(walk.steps);", "",
                      turns(narrow({{"groups", 2}}))),
          of_few_ctas("columns_before_rows_of_a_cluster", kWalk, "* kClusterM + in_group % kClusterM",
                      "* kClusterM + in_group / kClusterM % kClusterM", narrow({{"cluster", 2}, {"group", 2}})),
          of_few_ctas("staging_overwritten_by_the_next_tile", kStage, "if (lane == 0) tensor_store_wait<kSlots - 1>();",
                      "", by_tma(narrow({})), CaughtBy::kFinding),
          of_few_ctas("staging_in_the_ring", kKernel, "kStaging = {{ staging_at }}", "kStaging = 0",
                      by_tma(narrow({}))));
TEST_EACH(StreamK, WarpgroupMutants, of_parts("other_part_not_awaited", kParts, "if (*before == 0) return false;", ""),
          of_parts("arrival_before_the_part_is_stored", kParts, "  sync();\n  if (thread == 0) *before = arrive",
                   "  if (thread == 0) *before = arrive", CaughtBy::kFinding),
          of_parts("one_place_for_two_parts", kParts, "(2ll * cta + begins_tile)", "(2ll * cta)"),
          of_parts("own_part_twice", kParts, "*at(other, 1 - begins, i, j);", "*at(blockIdx.x, begins, i, j);",
                   CaughtBy::kComparison),
          of_parts("part_of_the_cta_before", kParts, "(begins ? 1 : -1)", "-begins"),
          of_parts("both_store_the_tile", kParts, "return false;", "return true;"),
          of_parts("one_counter_for_all_tiles", kParts, "arrivals + (walk.tile - walk.whole)", "arrivals"),
          of_parts("one_step_too_few", kWalk, "min(depth - first, end - at)", "min(depth - first - 1, end - at)"),
          of_parts("step_of_the_next_cta", kWalk, "end = at + each + (next < more ? 1 : 0);",
                   "end = at + each + (next < more ? 2 : 1);"),
          of_parts("part_begins_at_the_first_step", kKernel, "int step = walk.first; step < walk.first + walk.steps;",
                   "int step = 0; step < walk.steps;", CaughtBy::kComparison));

/// Of the operands of an epilogue that TMA loads, in rings of one or two slots.
Mutant of_loads(const char* name, const char* file, const char* from, const char* to,
                CaughtBy by = CaughtBy::kFinding) {
  return of_few_ctas(name, file, from, to, loading(by_tma(narrow({{"BN", 128}}))), by, "warpgroup",
                     {250, 392, 328, kBf16, "acc + residual[m,n]"});
}
constexpr const char* kOperands = "lib/operand_slabs.cuh";
TEST_EACH(Loads, WarpgroupMutants,
          of_loads("not_awaited", kEpilogue,
                   "if constexpr (j % kLoadTiles == 0) barrier_wait(loaded + 8 * slot.stage, slot.parity);", ""),
          of_loads("wrong_phase", kEpilogue, "barrier_wait(loaded + 8 * slot.stage, slot.parity);",
                   "barrier_wait(loaded + 8 * slot.stage, slot.parity ^ 1);"),
          of_loads("only_the_first_slab_awaited", kEpilogue, "if constexpr (j % kLoadTiles == 0) barrier_wait(loaded",
                   "if constexpr (j == 0) barrier_wait(loaded"),
          of_loads("overwritten", kKernel, "barrier_wait(taken + 8 * slot.stage, slot.parity ^ 1);", ""),
          of_loads("released_by_the_first_warp", kKernel, "barrier_init(taken + 8 * s, kWarps);",
                   "barrier_init(taken + 8 * s, 1);"),
          of_loads("never_released", kEpilogue, "if (lane == 0) barrier_arrive(taken + 8 * slot.stage);", ""),
          of_loads("too_few_bytes_expected", kKernel, "Operands::kBytes);", "Operands::kBytes / 2);"),
          of_loads("columns_of_the_first_slab", kKernel, "n0 + 8 * j, m0);", "n0, m0);", CaughtBy::kComparison),
          of_loads("without_swizzle", kOperands, "(byte / 16 ^ lane / 4) * 16", "byte / 16 * 16",
                   CaughtBy::kComparison),
          of_loads("pair_of_the_row_below", kOperands, "row * 128 +", "(row ^ 8) * 128 +", CaughtBy::kComparison));

}  // namespace
}  // namespace roofgen::test::gemm_warpgroup_test
