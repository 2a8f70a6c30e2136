// Attention with caches of different lengths, in pages and in both layouts: whole grids at small and odd sizes in the
// simulator, compared with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/ops/attention_parts.h"
#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_cache_test {
namespace {

using Case = AttentionCase;

const Texts kScoreMask{
    {"kv_lengths", "140,77,9"}, {"score", "s + 0.1 * slope[h] * (k - q) + extra[b, k]"}, {"mask", "q - k < 50"}};

const Case kCases[] = {
    {"ragged", {{"L", 1}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kLse, {{"kv_lengths", "100,333,33,1"}}},
    {"ragged_empty", {{"L", 3}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kLse, {{"kv_lengths", "0,100,0,0,33,0"}}},
    {"paged_empty",
     {{"L", 1}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"page", 16}},
     kLse,
     {{"kv_lengths", "64,0,100,0"}},
     {},
     0,
     DType::kBf16,
     InputPattern::kGrowing},
    {"ragged_causal", {{"L", 5}, {"d", 64}, {"heads", 2}}, kCausalLse, {{"kv_lengths", "130,5,77"}}},
    {"ragged_capacity", {{"L", 3}, {"kv_len", 400}, {"d", 64}, {"heads", 1}}, {}, {{"kv_lengths", "256,200"}}},
    {"ragged_more_queries_than_keys", {{"L", 70}, {"d", 64}, {"heads", 1}}, kLse, {{"kv_lengths", "20,150"}}},
    {"ragged_score_mask",
     {{"L", 6}, {"d", 64}, {"heads", 2}},
     kCausalLse,
     kScoreMask,
     {kSlope, {"extra", DType::kFp32, {"b", "k"}}}},
    {"ragged_hnd",
     {{"L", 2}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}},
     kLse,
     {{"kv_lengths", "100,33"}, {"kv_layout", "hnd"}}},
    {"hnd", {{"L", 70}, {"kv_len", 133}, {"d", 64}, {"batch", 2}, {"heads", 2}}, kLse, {{"kv_layout", "hnd"}}},
    {"hnd_lengths", {{"d", 64}, {"heads", 2}}, kCausalLse, {{"lengths", "70,33"}, {"kv_layout", "hnd"}}},
    {"paged_16",
     {{"L", 4}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"page", 16}},
     kLse,
     {{"kv_lengths", "100,300,33"}}},
    {"paged_32_d80",
     {{"L", 1}, {"d", 80}, {"heads", 2}, {"page", 32}},
     kCausalLse,
     {{"kv_lengths", "31,70,200,65"}},
     {},
     0,
     DType::kFp16},
    {"paged_64_same_lengths", {{"L", 3}, {"kv_len", 200}, {"d", 64}, {"batch", 3}, {"heads", 2}, {"page", 64}}, kLse},
    {"paged_64_whole_pages", {{"L", 64}, {"kv_len", 256}, {"d", 128}, {"batch", 2}, {"heads", 1}, {"page", 64}}},
    {"paged_128_hnd",
     {{"L", 2}, {"kv_len", 700}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"page", 128}},
     kLse,
     {{"kv_lengths", "300,513"}, {"kv_layout", "hnd"}}},
    {"paged_256", {{"L", 1}, {"d", 64}, {"heads", 1}, {"page", 256}}, kLse, {{"kv_lengths", "300,513"}}},
    {"paged_score_mask",
     {{"L", 6}, {"d", 64}, {"heads", 2}, {"page", 32}},
     kCausalLse,
     kScoreMask,
     {kSlope, {"extra", DType::kFp32, {"b", "k"}}}},
    {"paged_zero_query",
     {{"L", 2}, {"d", 64}, {"heads", 1}, {"page", 16}},
     kLse,
     {{"kv_lengths", "40,129"}},
     {},
     0,
     DType::kBf16,
     InputPattern::kZeroQuery},
    {"paged_one_hot",
     {{"L", 66}, {"d", 64}, {"heads", 1}, {"page", 16}},
     kLse,
     {{"kv_lengths", "100,129"}},
     {},
     0,
     DType::kBf16,
     InputPattern::kOneHot},
    {"paged_growing",
     {{"L", 66}, {"d", 64}, {"heads", 2}, {"page", 16}},
     kCausalLse,
     {{"kv_lengths", "100,129"}},
     {},
     0,
     DType::kBf16,
     InputPattern::kGrowing},
};

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

INSTANTIATE_TEST_SUITE_P(Problems, AttentionCache, testing::ValuesIn(kCases),
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
