// Attention with caches of different lengths, in pages and in both layouts: whole grids at small and odd sizes in the
// simulator, compared with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/ops/attention_parts.h"
#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_cache_test {
namespace {

using Case = AttentionCase;

class AttentionCache : public testing::TestWithParam<Case> {};

TEST_P(AttentionCache, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request;
  request.problem = problem_of(GetParam());
  request.variant = "unfused";
  request.pattern = GetParam().pattern;
  expect_right(request);
}

TEST_P(AttentionCache, IsRightInWarpgroups) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request;
  request.problem = problem_of(GetParam());
  request.variant = "warpgroup";
  request.pattern = GetParam().pattern;
  expect_right(request);
}

// softmax and pv in one kernel; the scale and the mask alone.
TEST_P(AttentionCache, IsRightInOtherParts) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Problem p = problem_of(GetParam());
  const size_t steps = attention_steps(p).size();
  const std::vector<std::vector<Part>> plans{{{0, steps - 2}, {steps - 2, steps}},
                                             {{0, 1}, {1, steps - 2}, {steps - 2, steps}}};
  for (const std::vector<Part>& plan : plans) {
    const AttentionParts op(p, plan);
    Request request;
    request.problem = op.problem_of(p);
    request.op = &op;
    request.variant = op.variants(DataFiles(), request.problem)->front().name;
    request.pattern = GetParam().pattern;
    expect_right(request);
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, AttentionCache, testing::ValuesIn(attention_cases("caches")),
                         [](const auto& test) { return test.param.name; });

// A cache may have lost all keys since the kernels were made, also one whose queries then begin before position 0.
class EmptyCaches : public testing::TestWithParam<std::string> {};

TEST_P(EmptyCaches, GiveZerosAndNoLogOfTheirSum) {
  for (const int64_t page : {0, 16})
    for (const bool causal : {false, true})
      for (const DType dtype : {DType::kBf16, DType::kFp8}) {
        if (dtype == DType::kFp8 && GetParam().find("warpgroup") != 0) continue;
        Case c{"", {{"L", 3}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, causal ? kCausalLse : kLse};
        c.dtype = dtype;
        c.texts["kv_lengths"] = "70,3,133,3";
        if (page > 0) c.dims["page"] = page;
        Request request;
        request.problem = problem_of(c);
        request.problem.texts["kv_lengths"] = "0,70,0,2";
        request.variant = GetParam();
        SCOPED_TRACE(fmt::format("page {}, causal {}, {}", page, causal, to_string(dtype)));
        expect_right(request);
      }
}

INSTANTIATE_TEST_SUITE_P(AttentionCache, EmptyCaches,
                         testing::Values("fused", "unfused", "split2", "merged3", "warpgroup", "warpgroup_split2",
                                         "warpgroup_merged3", "warpgroup_even3"),
                         [](const auto& test) { return test.param; });

ParamValue n(int64_t x) { return x; }

/// Tiles that are part of a page, a page, several pages, and neither.
class CacheSchedules : public testing::TestWithParam<std::tuple<int64_t, std::string, Pins>> {};

TEST_P(CacheSchedules, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [page, stage, pins] = GetParam();
  Request request;
  request.problem =
      problem_of({"", {{"L", 9}, {"d", 96}, {"heads", 2}, {"page", page}}, kCausalLse, {{"kv_lengths", "410,777"}}});
  request.variant = "unfused";
  request.pins[stage] = pins;
  expect_right(request);
}

INSTANTIATE_TEST_SUITE_P(
    Points, CacheSchedules,
    testing::Combine(
        testing::Values(16, 128, 256), testing::Values("scores"),
        testing::Values(
            Pins{{"BN", n(64)}, {"strip", n(4)}, {"stages", n(3)}},
            Pins{{"BM", n(64)}, {"BN", n(192)}, {"strip", n(2)}, {"stages", n(2)}, {"warps", n(8)}, {"warps_n", n(2)}},
            Pins{{"BN", n(128)}, {"strip", n(1)}, {"stages", n(1)}, {"swizzle", false}})));
INSTANTIATE_TEST_SUITE_P(
    ValuePoints, CacheSchedules,
    testing::Combine(
        testing::Values(16, 64, 256), testing::Values("pv"),
        testing::Values(Pins{{"BK", n(32)}, {"stages", n(4)}},
                        Pins{{"BM", n(64)}, {"BK", n(128)}, {"stages", n(2)}, {"warps", n(8)}, {"warps_n", n(2)}})));

}  // namespace
}  // namespace roofgen::test::attention_cache_test
