// Kernel quality by exact counts of instructions and accesses, at L = 2048 with the default schedules. The counts do
// not depend on a GPU's clock.
#include <gtest/gtest.h>

#include "tests/kernels/run_kernel.h"

namespace roofgen::test::attention_quality_test {
namespace {

class Quality : public testing::TestWithParam<std::tuple<std::string, int64_t>> {};

TEST_P(Quality, Counts) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [variant, d] = GetParam();
  constexpr int64_t L = 2048;
  Request request;
  request.problem = attention({{"L", L}, {"d", d}, {"batch", 1}, {"heads", 1}});
  request.variant = variant;
  auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  ASSERT_EQ(what_is_wrong(*runs), "");
  for (const StageRun& r : *runs) {
    SCOPED_TRACE(to_string(r.schedule));
    const Counts& c = r.counts;
    EXPECT_EQ(r.binary.spill_bytes, 0);
    EXPECT_EQ(c.local, 0u);
    EXPECT_EQ(c.narrow_load, 0u);
    EXPECT_GT(c.bulk_load_16, 0u);
    EXPECT_LE(static_cast<double>(c.smem_wavefronts), 1.02 * static_cast<double>(c.smem_ideal_wavefronts));

    const double operand = L * d * 2, matrix = L * L * 2;
    double reads = 0, writes = 0, flops = 0;
    if (r.stage == "attention") reads = 3 * operand, writes = operand, flops = 4.0 * L * L * static_cast<double>(d);
    if (r.stage == "scores") reads = 2 * operand, writes = matrix, flops = 2.0 * L * L * static_cast<double>(d);
    if (r.stage == "softmax") reads = matrix, writes = matrix;
    if (r.stage == "pv") reads = matrix + operand, writes = operand, flops = 2.0 * L * L * static_cast<double>(d);
    EXPECT_EQ(static_cast<double>(c.mma_flops), flops);
    EXPECT_LE(32.0 * static_cast<double>(c.unique_read_sectors + c.unique_write_sectors), 1.02 * (reads + writes));
    // Each output line is written once, in full sectors.
    EXPECT_EQ(32.0 * static_cast<double>(c.l2_write_sectors), writes);
    const double others =
        static_cast<double>(c.warp_instructions - c.mma) / std::max<double>(1, static_cast<double>(c.mma));
    if (r.stage == "attention" && d == 64) {
      EXPECT_LE(others, 5.5);
    }
    RecordProperty(r.stage + " other instructions per mma", std::to_string(others));
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, Quality,
                         testing::Combine(testing::Values("fused", "unfused"), testing::Values(64, 128)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_d" + std::to_string(std::get<1>(test.param));
                         });

// Rows whose size is not a multiple of 128 bytes need the general swizzle.
class BankConflicts : public testing::TestWithParam<int64_t> {};

TEST_P(BankConflicts, AreNone) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request;
  request.problem = attention({{"L", 256}, {"d", GetParam()}, {"batch", 1}, {"heads", 1}});
  for (const char* variant : {"fused", "unfused"}) {
    request.variant = variant;
    auto runs = run(request);
    ASSERT_TRUE(runs) << to_string(runs.error());
    for (const StageRun& r : *runs) {
      EXPECT_EQ(r.counts.smem_wavefronts, r.counts.smem_ideal_wavefronts) << to_string(r.schedule);
      EXPECT_EQ(r.binary.spill_bytes, 0) << to_string(r.schedule);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, BankConflicts, testing::Values(32, 48, 80, 96, 112, 144, 176, 240, 256));

}  // namespace
}  // namespace roofgen::test::attention_quality_test
