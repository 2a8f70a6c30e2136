// The warpgroup kernel of GEMM: its machine code against the published design, its results in the simulator, and
// mutants with one wrong line, each caught by a finding or by the comparison (docs/mutants.md).
#include <gtest/gtest.h>

#include "runtime/sass/cubin.h"
#include "runtime/sass/disassembler.h"
#include "tests/kernels/expect_caught.h"
#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_warpgroup_test {
namespace {

struct Case {
  std::string name;
  Gemm problem;
  Pins pins;
  int products;  ///< of one batch: between two waits, by one warpgroup
  int registers;
  int batches = 1;  ///< of a stage
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

class WarpgroupCode : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  static Result<Binary> binary() {
    const Case& c = GetParam();
    ROOFGEN_TRY(const Problem problem, gemm(c.problem));
    ROOFGEN_TRY(std::vector<Compiled> all, compile({problem, "warpgroup", {{"gemm", c.pins}}, {}, {}}));
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
INSTANTIATE_TEST_SUITE_P(
    Gemm, WarpgroupCode,
    testing::Values(
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
        Case{"fp8", {kSide, kSide, kSide, DType::kFp8}, {}, 4, 128},
        Case{"fp8_tall_tile", {kSide, kSide, kSide, DType::kFp8}, pins({{"BM", 256}, {"BN", 128}}), 4, 168, 2},
        Case{"block_scales", block_scaled(kSide, kSide, kSide), pins({{"BM", 256}, {"BN", 128}}), 4, 168, 2},
        Case{"fp8_three_groups",
             {kSide, kSide, kSide, DType::kFp8},
             pins({{"BM", 192}, {"BN", 128}, {"groups", 3}}),
             4,
             128}),
    [](const auto& test) { return test.param.name; });

// ---- Results ---------------------------------------------------------------------------------------

struct Small {
  std::string name;
  Gemm problem;
  Pins pins = {};
  std::string variant = "warpgroup", stage = "gemm";
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
/// A cluster of 2 x 2 CTAs.
Pins four_ctas() { return narrow({{"cluster", 2}, {"cluster_n", 2}, {"group", 2}}); }

class WarpgroupGemm : public testing::TestWithParam<Small> {};

TEST_P(WarpgroupGemm, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto problem = gemm(GetParam().problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  const auto runs =
      run({*problem, GetParam().variant, {{GetParam().stage, GetParam().pins}}, InputPattern::kNormal, {}});
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

const DType kBf16 = DType::kBf16;
INSTANTIATE_TEST_SUITE_P(
    Gemm, WarpgroupGemm,
    testing::Values(
        Small{"default", {200, 320, 200}}, Small{"narrow", {200, 136, 200}, narrow({})},
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
        Small{"tma_store_two_slots",
              {130, 392, 200},
              by_tma(pins({{"BM", 64}, {"BN", 128}, {"groups", 1}, {"wide", 4}}))},
        Small{"tma_store_three_slabs",
              {130, 392, 200},
              by_tma(pins({{"BM", 64}, {"BN", 192}, {"groups", 1}, {"wide", 2}}))},
        Small{"tma_store_two_tiles_of_rows", {200, 136, 200}, by_tma(pins({{"BM", 256}, {"BN", 64}, {"groups", 2}}))},
        Small{"tma_store_pingpong", {130, 400, 328}, by_tma(pingpong(2, 4))},
        Small{
            "tma_store_of_a_formula", {200, 320, 200, kBf16, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"}, by_tma({})},
        Small{"tma_store_fp8", {200, 320, 336, DType::kFp8}, by_tma({})},
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
        Small{"odd_columns", {70, 137, 200}}, Small{"one_step", {70, 136, 24}}),
    [](const auto& test) { return test.param.name; });

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
  std::string name, file, from, to;
  Pins pins = narrow({});
  CaughtBy by = CaughtBy::kFinding;
  Gemm problem = {250, 400, 328};
  std::string variant = "warpgroup", stage = "gemm";
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class WarpgroupMutants : public testing::TestWithParam<Mutant> {};

TEST_P(WarpgroupMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  const auto problem = gemm(m.problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  expect_caught(run({*problem, m.variant, {{m.stage, m.pins}}, InputPattern::kNormal, {{m.file, m.from, m.to}}}), m.by,
                1.9);
}

const Gemm kEvenTiles = {250, 504, 328};
const Gemm kSplit = {70, 72, 2104};
const Gemm kScaled = block_scaled(250, 400, 656);
const Gemm kFp8 = {250, 400, 656, DType::kFp8};
const std::string kKernel = "gemm/warpgroup.cu.jinja", kEpilogue = "gemm/epilogue.cuh.jinja", kWgmma = "lib/wgmma.cuh",
                  kBarrier = "lib/barrier.cuh", kPromote = "lib/promote.cuh", kStage = "lib/tensor_stage.cuh";
INSTANTIATE_TEST_SUITE_P(
    Gemm, WarpgroupMutants,
    testing::Values(
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
        Mutant{"last_batch_not_awaited", kKernel, "{% if not promoted %}\n    wgmma_wait<0>();",
               "{% if not promoted %}\n"},
        Mutant{"fence_dropped", kKernel, "hold(c[i]);\n      wgmma_fence();", "hold(c[i]);\n"},
        Mutant{"step_of_a", kKernel, "kAStep = {{ 2048 if a_turned else 32 }}",
               "kAStep = {{ 2048 if a_turned else 64 }}", narrow({}), CaughtBy::kEither},
        Mutant{"step_of_b", kKernel, "kBStep = {{ 2048 if b_turned else 32 }}",
               "kBStep = {{ 2048 if b_turned else 16 }}", narrow({}), CaughtBy::kEither},
        Mutant{"swizzle_of_64_bytes", kWgmma, "kSwizzle128 = 1ull << 62", "kSwizzle128 = 2ull << 62", narrow({}),
               CaughtBy::kEither},
        Mutant{"no_swizzle", kWgmma, "kSwizzle128 = 1ull << 62", "kSwizzle128 = 0ull << 62", narrow({}),
               CaughtBy::kEither},
        Mutant{"rows_of_eight_apart", kWgmma, "int stride = 1024", "int stride = 512", narrow({}), CaughtBy::kEither},
        Mutant{"sum_not_started_from_zero", kKernel, "step > 0 || k > 0);", "true);", narrow({}), CaughtBy::kEither},
        Mutant{"other_cta_not_awaited", kKernel, "kWarps * kReaders);  // {{", "kWarps);  // {{",
               narrow({{"cluster", 2}, {"group", 2}}), CaughtBy::kEither},
        Mutant{"stage_of_the_other_cta_not_released", kKernel, "barrier_arrive_at(empty + 8 * stage, lane);",
               "barrier_arrive_at(empty + 8 * stage, rank);", narrow({{"cluster", 2}, {"group", 2}})},
        Mutant{"stage_released_to_the_diagonal", kKernel, "(lane % kClusterM == rank_m || lane / kClusterM == rank_n)",
               "(lane % kClusterM != rank_m || lane / kClusterM == rank_n)", four_ctas(), CaughtBy::kEither,
               kEvenTiles},
        Mutant{"both_load_the_same_half", kKernel, "b_part = rank_m * (BN / kClusterM);", "b_part = 0;",
               narrow({{"cluster", 2}, {"group", 2}}), CaughtBy::kEither},
        Mutant{"both_load_the_same_rows", kKernel, "a_part = rank_n * (BM / kClusterN)", "a_part = 0",
               narrow({{"cluster_n", 2}}), CaughtBy::kEither, kEvenTiles},
        Mutant{"part_of_a_for_the_other_row", kKernel, "a_for |= 1 << (rank_m + kClusterM * n);",
               "a_for |= 1 << (1 - rank_m + kClusterM * n);", four_ctas(), CaughtBy::kEither, kEvenTiles},
        Mutant{"part_of_b_for_the_other_column", kKernel, "<< (kClusterM * rank_n);", "<< (kClusterM * (1 - rank_n));",
               four_ctas(), CaughtBy::kEither, kEvenTiles},
        Mutant{"part_of_a_at_the_wrong_place", kKernel, "rank_n * (kABytes / kClusterN)",
               "rank_m * (kABytes / kClusterN)", four_ctas(), CaughtBy::kEither, kEvenTiles},
        Mutant{"a_only_for_itself", kKernel, "a_for |= 1 << (rank_m + kClusterM * n);", "a_for = 1 << rank;",
               narrow({{"cluster_n", 2}}), CaughtBy::kEither, kEvenTiles},
        Mutant{"barriers_not_fenced", kKernel, "    barrier_init_fence();\n", "",
               narrow({{"cluster", 2}, {"group", 2}})},
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
        Mutant{"turn_not_awaited", kKernel, "if (tile > 0) named_barrier(kFirstTurn + consumer, 256);", "",
               pingpong(2, 4), CaughtBy::kEither},
        Mutant{"turn_not_passed", kKernel,
               "if (tile + 1 < tiles) named_barrier_arrive(kFirstTurn + (consumer + 1) % kGroups, 256);", "",
               pingpong(2, 4)},
        Mutant{"stages_of_the_other_consumer", kKernel, "place.advance(consumer * steps);", "", pingpong(2, 4),
               CaughtBy::kEither},
        Mutant{"producer_ends_early", kKernel, "if (++step == steps) step = 0, ++tile, n0 += BN;",
               "if (++step == steps - 1) step = 0, ++tile, n0 += BN;"},
        Mutant{"tile_of_another_column", kKernel, "step = 0, ++tile, n0 += BN;", "step = 0, ++tile;",
               narrow({{"wide", 4}}), CaughtBy::kEither},
        Mutant{"slab_of_another_part", kKernel, "k0 = blockIdx.z * k_per_split,", "k0 = blockIdx.z * kTileK,",
               narrow({}), CaughtBy::kComparison, kSplit, "warpgroup_split_k8", "partial"},
        Mutant{"slabs_overlap", kKernel, "min(k_per_split, K - k0)", "K - k0", narrow({}), CaughtBy::kComparison,
               kSplit, "warpgroup_split_k8", "partial"},
        Mutant{"empty_slab_not_written", kKernel, "max(1, ceil_div(min(k_per_split, K - k0), kTileK))",
               "ceil_div(min(k_per_split, K - k0), kTileK)", narrow({}), CaughtBy::kEither, kSplit,
               "warpgroup_split_k8", "partial"},
        Mutant{"slabs_at_one_address", kEpilogue, "blockIdx.z * (static_cast<long long>(M) * cols)", "0", narrow({}),
               CaughtBy::kFinding, kSplit, "warpgroup_split_k8", "partial"},
        Mutant{"scales_of_the_first_slab", kKernel, "k_blocks, min(k0 / kTileK + step + 1, k_blocks - 1));",
               "k_blocks, min(step + 1, k_blocks - 1));", narrow({}), CaughtBy::kComparison,
               block_scaled(70, 200, 2112), "warpgroup_split_k8", "partial"},
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
        Mutant{"stmatrix_without_swizzle", kStage, "(matrix / 2 ^ row % 8) * 16", "(matrix / 2) * 16",
               by_tma(narrow({})), CaughtBy::kComparison},
        Mutant{"stmatrix_of_tiles_exchanged", kStage, "(matrix / 2 ^ row % 8) * 16", "(1 - matrix / 2 ^ row % 8) * 16",
               by_tma(narrow({})), CaughtBy::kComparison},
        Mutant{"stmatrix_rows_exchanged", kStage, "words[0][0], words[0][1],", "words[0][1], words[0][0],",
               by_tma(narrow({})), CaughtBy::kComparison},
        Mutant{"slab_of_the_next_columns", kEpilogue, "n0 + 8 * (j - 7), m0", "n0 + 8 * j, m0", by_tma(narrow({})),
               CaughtBy::kEither},
        Mutant{"part_not_promoted", kKernel, "promote(c[i], part{{", "if (step == 0) promote(c[i], part{{", narrow({}),
               CaughtBy::kComparison, kFp8},
        Mutant{"scale_of_the_next_k", kKernel, "k_blocks, min(k0 / kTileK + step + 1, k_blocks - 1));",
               "k_blocks, min(k0 / kTileK + step + 2, k_blocks - 1));", narrow({}), CaughtBy::kComparison, kScaled},
        Mutant{"scale_of_the_first_k", kKernel, "k_blocks, min(k0 / kTileK + step + 1, k_blocks - 1));",
               "k_blocks, 0);", narrow({}), CaughtBy::kComparison, kScaled},
        Mutant{"scale_of_the_first_columns", kKernel, "row0, n0, M, N, k_blocks, min(k0 / kTileK + step",
               "row0, 0, M, N, k_blocks, min(k0 / kTileK + step", narrow({}), CaughtBy::kComparison, kScaled},
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
        Mutant{"part_promoted_in_flight", kKernel, "hold(part);\n        wgmma_wait<0>();", "hold(part);", narrow({}),
               CaughtBy::kFinding, kFp8},
        Mutant{"stage_released_before_the_part_is_complete", kKernel,
               "wgmma_commit();\n        hold(part);\n        wgmma_wait<0>();\n        hold(part);\n"
               "        if (i == MT - 1) release(place.stage);",
               "if (i == MT - 1) release(place.stage);\n        wgmma_commit();\n        hold(part);\n"
               "        wgmma_wait<0>();\n        hold(part);",
               narrow({}), CaughtBy::kFinding, kFp8}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::gemm_warpgroup_test
