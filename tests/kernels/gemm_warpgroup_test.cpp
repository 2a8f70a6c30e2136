// The warpgroup kernel of GEMM: its machine code against the published design, its results in the
// simulator.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/sass/cubin.h"
#include "runtime/sass/disassembler.h"
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

}  // namespace
}  // namespace roofgen::test::gemm_warpgroup_test
