// Quality of GEMM kernels by exact counts of one CTA at K = 4096. The counts do not depend on a GPU's clock.
#include <gtest/gtest.h>

#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_quality_test {
namespace {

/// One 128 x 128 x 32 tile, all of K = 4096.
struct Run {
  Binary binary;
  Counts counts;
};
Result<Run> run_tile(const std::string& epilogue, int64_t warps_n, const char* a_layout = "row",
                     const char* b_layout = "col", DType dtype = DType::kBf16) {
  ROOFGEN_TRY(const Problem problem, gemm({128, 128, 4096, dtype, epilogue, a_layout, b_layout}));
  const Pins pins{{"BM", int64_t{128}},
                  {"BN", int64_t{128}},
                  {"BK", int64_t{32}},
                  {"warps_m", int64_t{2}},
                  {"warps_n", warps_n},
                  {"stages", int64_t{4}},
                  {"store", std::string("staged")}};
  ROOFGEN_TRY(const std::vector<StageRun> runs, run({problem, "fused", {{"gemm", pins}}, InputPattern::kNormal, {}}));
  if (const std::string wrong = what_is_wrong(runs); !wrong.empty()) return Error{Exit::kFailed, wrong};
  return Run{runs[0].binary, runs[0].counts};
}
double others_per_mma(const Counts& c) {
  return static_cast<double>(c.warp_instructions - c.mma) / static_cast<double>(c.mma);
}

class Tiles : public testing::TestWithParam<std::tuple<int64_t, std::string, std::string>> {};

TEST_P(Tiles, Counts) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [warps_n, a_layout, b_layout] = GetParam();
  auto r = run_tile("acc", warps_n, a_layout.c_str(), b_layout.c_str());
  ASSERT_TRUE(r) << to_string(r.error());
  const Counts& c = r->counts;
  EXPECT_EQ(r->binary.spill_bytes, 0);
  EXPECT_EQ(c.local, 0u);
  EXPECT_EQ(c.narrow_load, 0u);
  EXPECT_EQ(static_cast<double>(c.mma_flops), 2.0 * 128 * 128 * 4096);
  EXPECT_LE(static_cast<double>(c.smem_wavefronts), 1.02 * static_cast<double>(c.smem_ideal_wavefronts));
  EXPECT_LE(others_per_mma(c), 1.5);
  EXPECT_EQ(32 * c.l2_write_sectors, 128u * 128 * 2);  // each once, in full sectors
  EXPECT_EQ(32 * c.unique_read_sectors, 2u * 128 * 4096 * 2);
  RecordProperty("other instructions per mma", std::to_string(others_per_mma(c)));
}
INSTANTIATE_TEST_SUITE_P(Gemm, Tiles,
                         testing::Combine(testing::Values(2, 4), testing::Values("row", "col"),
                                          testing::Values("row", "col")),
                         [](const auto& test) {
                           return std::to_string(2 * std::get<0>(test.param)) + "_warps_" + std::get<1>(test.param) +
                                  "_" + std::get<2>(test.param);
                         });

TEST(GemmEpilogue, AddsFewInstructions) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto plain = run_tile("acc", 2);
  ASSERT_TRUE(plain) << to_string(plain.error());
  // Reached values (docs/kernels/gemm.md): 3 % for arithmetic with two operations per element; GELU in fp32 needs more.
  for (const auto& [epilogue, limit] :
       {std::pair{"relu(acc + bias[n])", 0.03}, std::pair{"gelu_tanh(acc + bias[n])", 0.065},
        std::pair{"gelu(acc + bias[n])", 0.08}}) {
    auto fused = run_tile(epilogue, 2);
    ASSERT_TRUE(fused) << to_string(fused.error());
    const double more =
        static_cast<double>(fused->counts.warp_instructions) / static_cast<double>(plain->counts.warp_instructions) - 1;
    EXPECT_LE(more, limit) << epilogue;
    EXPECT_EQ(fused->binary.spill_bytes, 0);
    EXPECT_EQ(fused->counts.mma, plain->counts.mma);
  }
}

}  // namespace
}  // namespace roofgen::test::gemm_quality_test
