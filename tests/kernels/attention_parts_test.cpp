// Attention as separate kernels: every part alone on given inputs, and every partition as a whole, simulated at small
// and odd sizes and compared with the reference. Exact counts check the traffic.
#include "generator/ops/attention_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_parts_test {
namespace {

using Case = AttentionCase;

/// The distinct parts of all buildable partitions.
std::vector<Part> parts_of(const Problem& p) {
  std::vector<Part> out;
  for (const Partition& partition : attention_partitions(p))
    for (const Part& part : partition.parts)
      if (partition.illegal.empty() && std::find(out.begin(), out.end(), part) == out.end()) out.push_back(part);
  return out;
}

void expect_right(const AttentionParts& op, const Problem& problem, InputPattern pattern,
                  const std::map<std::string, Pins>& pins = {}) {
  Request request;
  request.problem = op.problem_of(problem);
  request.op = &op;
  const auto variants = op.variants(DataFiles(), request.problem);
  ASSERT_TRUE(variants) << to_string(variants.error());
  request.variant = variants->front().name;
  request.pattern = pattern;
  request.pins = pins;
  test::expect_right(request);
}

class AttentionPart : public testing::TestWithParam<Case> {};
class AttentionPartAlone : public testing::TestWithParam<Case> {};

/// Values that are given know no pattern.
std::vector<Case> without_pattern(std::vector<Case> all) {
  std::erase_if(all, [](const Case& c) { return c.pattern != InputPattern::kNormal; });
  return all;
}

TEST_P(AttentionPartAlone, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem p = problem_of(GetParam());
  for (const Part& part : parts_of(p)) expect_right(AttentionParts(p, {part}), p, InputPattern::kNormal);
}

TEST_P(AttentionPart, TogetherAreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem p = problem_of(GetParam());
  for (const Partition& partition : attention_partitions(p))
    if (partition.illegal.empty()) expect_right(AttentionParts(p, partition.parts), p, GetParam().pattern);
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Problems, AttentionPart, testing::ValuesIn(attention_cases("parts")), kName);
INSTANTIATE_TEST_SUITE_P(Problems, AttentionPartAlone, testing::ValuesIn(without_pattern(attention_cases("parts"))),
                         kName);
INSTANTIATE_TEST_SUITE_P(SlowProblems, AttentionPart, testing::ValuesIn(attention_cases("more parts")), kName);
INSTANTIATE_TEST_SUITE_P(SlowProblems, AttentionPartAlone,
                         testing::ValuesIn(without_pattern(attention_cases("more parts"))), kName);

/// The only kernel of a part, with its default schedule or with `pins`.
StageRun run_part(const Problem& p, Part part, const Pins& pins = {}) {
  const AttentionParts op(p, {part});
  Request request;
  request.problem = op.problem_of(p);
  request.op = &op;
  request.variant = attention_part_name(p, part);
  request.pins[request.variant] = pins;
  auto runs = run(request);
  EXPECT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
  return runs->front();
}

// The cost of a separate scaling kernel: one read and one write of every score, nothing else.
TEST(AttentionPartCounts, APointwiseKernelMovesTheScoresOnce) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const uint64_t L = 256, heads = 2, sectors = heads * L * L * 2 / 32;
  const Problem p = problem_of({"", {{"L", 256}, {"d", 64}, {"batch", 1}, {"heads", 2}}});
  const Counts c = run_part(p, {1, 2}).counts;
  for (uint64_t read : {c.unique_read_sectors, c.l2_read_sectors}) EXPECT_EQ(read, sectors);
  for (uint64_t written : {c.unique_write_sectors, c.l2_write_sectors}) EXPECT_EQ(written, sectors);
}

// A causal mask keeps the groups of 8 keys that contain a visible key: row r has r / 8 + 1.
TEST(AttentionPartCounts, AMaskMovesVisibleScoresOnly) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem p = problem_of({"", {{"L", 256}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausal});
  uint64_t sectors = 0;
  for (uint64_t row = 0; row < 256; ++row) sectors += (row / 8 + 2) / 2;
  for (Part part : {Part{1, 3}, Part{2, 3}}) {
    const Counts c = run_part(p, part).counts;
    EXPECT_EQ(c.unique_read_sectors, sectors);
    EXPECT_EQ(c.unique_write_sectors, sectors);
  }
  // Scaling alone does not use the mask.
  EXPECT_EQ(run_part(p, {1, 2}).counts.unique_read_sectors, 256u * 256 * 2 / 32);
  // A product that is masked later does not use the mask either: twice the tiles, except on the diagonal.
  const Pins tiles{{"BM", int64_t{64}}, {"BN", int64_t{64}}};
  EXPECT_EQ(run_part(p, {0, 1}, tiles).counts.mma_flops, 16u * 2 * 64 * 64 * 64);
  EXPECT_EQ(run_part(p, {0, 3}, tiles).counts.mma_flops, 10u * 2 * 64 * 64 * 64);
}

/// Non-default schedules with everything combined.
class PartSchedules : public testing::TestWithParam<std::tuple<Part, Pins>> {};

TEST_P(PartSchedules, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [part, pins] = GetParam();
  const Problem p = problem_of({"",
                                {{"L", 300}, {"kv_len", 333}, {"d", 64}, {"batch", 1}, {"heads", 1}},
                                kCausalLse,
                                {{"score", "s + 0.05 * slope[h] * (k - q)"}, {"mask", "k < 4 or q - k < 70"}},
                                {kSlope}});
  EXPECT_GT(run_part(p, part, pins).comparison.rows, 0u);
}

ParamValue n(int64_t x) { return x; }

INSTANTIATE_TEST_SUITE_P(
    Points, PartSchedules,
    testing::Values(
        std::tuple{Part{1, 3}, Pins{{"row_threads", n(64)}, {"threads", n(512)}, {"batch_pieces", n(1)}}},
        std::tuple{Part{2, 3}, Pins{{"row_threads", n(32)}, {"threads", n(128)}, {"batch_pieces", n(2)}}},
        std::tuple{Part{1, 4}, Pins{{"row_in", std::string("memory")}}},
        std::tuple{Part{2, 4}, Pins{{"row_threads", n(64)}, {"threads", n(256)}}},
        std::tuple{Part{1, 5},
                   Pins{{"BM", n(128)}, {"BN", n(32)}, {"stages", n(4)}, {"rescale", std::string("always")}}},
        std::tuple{Part{2, 5},
                   Pins{{"BM", n(128)}, {"warps", n(8)}, {"BN", n(128)}, {"stages", n(2)}, {"swizzle", false}}},
        std::tuple{Part{3, 5}, Pins{{"BM", n(256)}, {"warps", n(8)}, {"stages", n(3)}}}));

}  // namespace
}  // namespace roofgen::test::attention_parts_test
