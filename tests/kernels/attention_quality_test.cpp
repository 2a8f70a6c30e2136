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

/// Decode reads the cache once: K and V of a group are counted once, whatever the group.
struct Decode {
  const char* name;
  const char* variant;
  int64_t group;
  std::map<std::string, int64_t> more = {};
  std::map<std::string, bool> flags = {};
  std::map<std::string, std::string> texts = {};
  bool fp8 = false;
};
void PrintTo(const Decode& d, std::ostream* out) { *out << d.name; }

class DecodeQuality : public testing::TestWithParam<Decode> {};

TEST_P(DecodeQuality, ReadsTheCacheOnce) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Decode& c = GetParam();
  constexpr int64_t kv_len = 4096, d = 128, kv_heads = 2;
  Problem p{"attention", {{"L", 1}, {"kv_len", kv_len}, {"d", d}, {"batch", 1}}, DType::kBf16, c.flags, {}};
  p.dims["kv_heads"] = kv_heads;
  p.dims["heads"] = kv_heads * c.group;
  for (const auto& [name, value] : c.more) p.dims[name] = value;
  p.texts = c.texts;
  if (c.fp8) p.dtypes["kv"] = DType::kFp8;
  Request request;
  request.problem = *(*find_op("attention"))->complete(p);
  request.variant = c.variant;
  auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  ASSERT_EQ(what_is_wrong(*runs), "");
  const Counts& counts = runs->front().counts;
  // Q, the block table and the turns of the rotation are a part of the other bytes.
  const double cache = 2.0 * kv_len * kv_heads * d * (c.fp8 ? 1 : 2),
               query = 2.0 * static_cast<double>(kv_heads * c.group * d),
               read = 32.0 * static_cast<double>(counts.l2_read_sectors),
               touched = 32.0 * static_cast<double>(counts.unique_read_sectors);
  RecordProperty("L2 reads over the cache", std::to_string(read / cache));
  EXPECT_GE(read, cache);
  EXPECT_LE(read, 1.03 * (cache + query));
  EXPECT_LE(touched, 1.03 * (cache + query));
  EXPECT_EQ(counts.local, 0u);
  // The merge of the warps has a few bank conflicts.
  EXPECT_LE(static_cast<double>(counts.smem_wavefronts), 1.03 * static_cast<double>(counts.smem_ideal_wavefronts));
}

INSTANTIATE_TEST_SUITE_P(Attention, DecodeQuality,
                         testing::Values(Decode{"one_head", "fused", 1}, Decode{"group_of_4", "fused", 4},
                                         Decode{"group_of_7", "fused", 7}, Decode{"group_of_8_split", "split8", 8},
                                         Decode{"group_of_16", "fused", 16}, Decode{"group_of_40", "fused", 40},
                                         Decode{"pages", "fused", 8, {{"page", 64}}},
                                         Decode{"fp8", "fused", 8, {}, {}, {}, true},
                                         Decode{"append", "split4", 8, {}, {{"append", true}}, {{"rotary", "half"}}}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace roofgen::test::attention_quality_test
