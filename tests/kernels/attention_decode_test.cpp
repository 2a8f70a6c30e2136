// Attention with few queries, as it is served, in all variants: whole grids at small and odd sizes in the
// simulator, compared with the reference.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_decode_test {
namespace {

using Decode = VariantCase;

class AttentionDecode : public testing::TestWithParam<Decode> {};

TEST_P(AttentionDecode, IsRight) { expect_right(GetParam()); }

std::string name_of(const testing::TestParamInfo<Decode>& test) { return test.param.problem.name; }

/// What a problem has besides its sizes.
struct Feature {
  const char* name;
  Flags flags = {};
  Texts texts = {};
  int64_t page = 0;
  bool lengths = false, kv_lengths = false;
  double softcap = 0;
};

const Feature kFeatures[] = {
    {"plain", kLse},
    {"causal", kCausalLse},
    {"softcap", {}, {}, 0, false, false, 20},
    {"window", kCausalLse, {{"mask", "q - k < 20"}}},
    {"score", kLse, {{"score", "s + 0.1 * slope[h] * (k - q)"}}},
    {"mask_by_head", kLse, {{"mask", "q - k < 10 + 9 * h"}}},
    {"score_mask_by_head", kLse, {{"score", "s + 0.1 * slope[h] * (k - q)"}, {"mask", "q - k < 60 - 7 * h"}}},
    {"lengths", kCausalLse, {}, 0, true},
    {"kv_lengths", kLse, {}, 0, false, true},
    {"page_16", kLse, {}, 16, false, true},
    {"page_64_hnd", {}, {{"kv_layout", "hnd"}}, 64},
    {"page_256_causal", kCausalLse, {}, 256},
    {"hnd", kCausal, {{"kv_layout", "hnd"}}},
    {"page_32_score", kCausalLse, {{"score", "s + 0.1 * slope[h] * (k - q)"}}, 32, false, true},
    {"page_128_softcap", {}, {}, 128, false, true, 20},
};

Decode decode(int64_t group, int64_t queries, int64_t keys, int64_t d, const Feature& f, const std::string& variant) {
  Decode out{{fmt::format("{}_group{}_L{}_kv{}_d{}_{}", variant, group, queries, keys, d, f.name), {}}, variant};
  AttentionCase& c = out.problem;
  c.flags = f.flags;
  c.texts = f.texts;
  c.softcap = f.softcap;
  c.dims = {{"L", queries}, {"kv_len", keys}, {"d", d}};
  c.dims["kv_heads"] = group < 16 ? 2 : 1;
  c.dims["heads"] = group * c.dims["kv_heads"];
  if (f.texts.count("score")) c.args = {kSlope};
  if (f.page > 0) c.dims["page"] = f.page;
  if (f.lengths) {
    c.dims.erase("L");
    c.dims.erase("kv_len");
    c.texts["lengths"] = fmt::format("{},{},1", queries, keys % 70 + 1);
  } else if (f.kv_lengths) {
    // A short sequence leaves splits without keys.
    const int64_t least = c.flags.count("causal") ? queries : 1, longest = std::max(keys, least);
    c.dims["kv_len"] = longest + 10;
    c.texts["kv_lengths"] = fmt::format("{},{}", longest, std::max(least, longest / 9));
  } else {
    c.dims["batch"] = 2;
  }
  return out;
}

/// Every group with every number of queries; keys, d and features vary with them.
std::vector<Decode> sizes() {
  constexpr int64_t kKeys[] = {1, 15, 64, 65, 300}, kD[] = {64, 96, 128, 256};
  std::vector<Decode> out;
  size_t i = 0, g = 0;
  for (const int64_t group : {1, 2, 5, 7, 8, 64}) {
    size_t l = 0;
    for (const int64_t queries : {1, 3, 4, 17}) {
      for (const char* variant : {"fused", "split2", "split7"}) {
        out.push_back(decode(group, queries, kKeys[(i + g) % 5], kD[(g + l + i / 3) % 4],
                             kFeatures[(4 * i + g) % std::size(kFeatures)], variant));
        ++i;
      }
      ++l;
    }
    ++g;
  }
  // Once for each group and number of queries, because both forms of split keys compute the parts with the same code.
  for (const int64_t group : {1, 2, 5, 7, 8, 64})
    for (const int64_t queries : {1, 3, 4, 17}) {
      const size_t n = out.size();
      out.push_back(decode(group, queries, kKeys[n % 5], kD[(n + n / 4) % 4], kFeatures[4 * n % std::size(kFeatures)],
                           n % 2 == 0 ? "merged2" : "merged7"));
    }
  return out;
}

/// The same by warpgroups: every group with every number of queries once, and every feature in every form.
std::vector<Decode> warpgroup_sizes() {
  constexpr int64_t kKeys[] = {1, 15, 64, 300, 129, 517}, kD[] = {64, 128, 96, 256, 80};
  std::vector<Decode> out;
  size_t i = 0;
  for (const int64_t group : {1, 2, 5, 7, 8, 64})
    for (const int64_t queries : {1, 3, 4, 17}) {
      const char* variants[] = {"warpgroup", "warpgroup_split2", "warpgroup_split7", "warpgroup_merged3"};
      out.push_back(decode(group, queries, kKeys[i % 6], kD[(i + i / 5) % 5], kFeatures[7 * i % std::size(kFeatures)],
                           variants[(i + i / 4) % 4]));
      ++i;
    }
  for (const Feature& f : kFeatures)
    for (const char* variant : {"warpgroup", "warpgroup_split3", "warpgroup_merged3"}) {
      out.push_back(decode(5, 3, 700, 64, f, variant));
      out.back().problem.name += "_packed";
    }
  for (const auto& [name, pattern] : {std::pair{"zero_query", InputPattern::kZeroQuery},
                                      {"one_hot", InputPattern::kOneHot},
                                      {"growing", InputPattern::kGrowing}})
    for (const char* variant : {"warpgroup", "warpgroup_split4", "warpgroup_merged4"}) {
      out.push_back(decode(8, 2, 500, 64, kFeatures[1], variant));
      out.back().problem.name += std::string("_") + name;
      out.back().problem.pattern = pattern;
    }
  return out;
}

INSTANTIATE_TEST_SUITE_P(SlowWarpgroup, AttentionDecode, testing::ValuesIn(warpgroup_sizes()), name_of);

INSTANTIATE_TEST_SUITE_P(SlowSizes, AttentionDecode, testing::ValuesIn(sizes()), name_of);

/// Every feature with the heads of a group as rows of a tile, and more splits than tiles.
std::vector<Decode> features() {
  std::vector<Decode> out;
  for (const Feature& f : kFeatures)
    for (const char* variant : {"fused", "split9", "merged9", "unfused"}) {
      out.push_back(decode(5, 3, 300, 64, f, variant));
      out.back().problem.name += "_packed";
    }
  for (const auto& [name, pattern] : {std::pair{"zero_query", InputPattern::kZeroQuery},
                                      {"one_hot", InputPattern::kOneHot},
                                      {"growing", InputPattern::kGrowing}})
    for (const char* variant : {"fused", "split4", "merged4", "unfused"}) {
      out.push_back(decode(8, 2, 500, 64, kFeatures[1], variant));
      out.back().problem.name += std::string("_") + name;
      out.back().problem.pattern = pattern;
    }
  return out;
}

INSTANTIATE_TEST_SUITE_P(SlowFeatures, AttentionDecode, testing::ValuesIn(features()), name_of);

ParamValue n(int64_t x) { return x; }

/// Key warps, stages and packed heads, with tiles that are smaller and larger than a page.
std::vector<Decode> schedules() {
  std::vector<Decode> out;
  for (const int64_t key_warps : {1, 2, 4, 8})
    for (const int64_t stages : {1, 2, 3, 4})
      for (const std::string variant : {"fused", "split3", "merged3"}) {
        const bool split = variant == "split3", packed = (key_warps / 2 + stages + split) % 2 == 0;
        const int64_t warps = key_warps == 8 ? 8 : 4, page = stages == 2 ? 0 : stages == 3 ? 16 : 256;
        AttentionCase c{
            fmt::format("{}_key_warps{}_stages{}{}_page{}", variant, key_warps, stages, packed ? "_packed" : "", page),
            {{"L", 9}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}},
            kCausalLse,
            {{"kv_lengths", "500,65"}}};
        if (page > 0) c.dims["page"] = page;
        const Pins pins{{"warps_k", n(key_warps)}, {"stages", n(stages)},
                        {"warps", n(warps)},       {"BM", n(16 * warps / key_warps)},
                        {"pack_gqa", packed},      {"BN", n(16 * std::max<int64_t>(4, key_warps))},
                        {"swizzle", stages != 4},  {"rescale", std::string(stages == 3 ? "always" : "lazy")}};
        out.push_back({c, variant, {{split ? "partial" : "attention", pins}}});
      }
  return out;
}

INSTANTIATE_TEST_SUITE_P(SlowSchedules, AttentionDecode, testing::ValuesIn(schedules()), name_of);

/// Small tiles, packed heads and warps that share columns, in scores and pv; with masks by head and pages.
std::vector<Decode> unfused_schedules() {
  std::vector<Decode> out;
  for (const int64_t rows : {16, 32, 64})
    for (const int64_t warps_n : {1, 2, 4})
      for (const bool packed : {false, true}) {
        const int64_t warps_m = std::min<int64_t>(rows / 16, 8 / warps_n),
                      warps = std::max<int64_t>(4, warps_m * warps_n);
        if (warps / warps_n * 16 > rows) continue;
        AttentionCase c{fmt::format("unfused_rows{}_columns{}{}", rows, warps_n, packed ? "_packed" : ""),
                        {{"L", 9}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}},
                        kCausalLse,
                        {{"kv_lengths", "500,65"}}};
        if (warps_n == 2) c.dims["page"] = rows == 32 ? 256 : 16;
        if (warps_n == 4) c.texts["mask"] = "q - k < 40 + 50 * h";
        const Pins pins{{"BM", n(rows)},
                        {"warps", n(warps)},
                        {"warps_n", n(warps_n)},
                        {"pack_gqa", packed},
                        {"swizzle", rows != 32}};
        Pins scores = pins, pv = pins;
        scores["BN"] = n(warps_n == 1 ? 64 : 128);
        pv["BK"] = n(rows == 16 ? 128 : 32);
        out.push_back({c, "unfused", {{"scores", scores}, {"pv", pv}}});
      }
  return out;
}

INSTANTIATE_TEST_SUITE_P(SlowUnfused, AttentionDecode, testing::ValuesIn(unfused_schedules()), name_of);

std::vector<Decode> combinations() {
  std::vector<Decode> out;
  for (const auto& [rows, heads, row_warps] :
       {std::tuple{1, 1, 8}, {1, 8, 1}, {4, 1, 2}, {4, 2, 1}, {4, 4, 1}, {1, 2, 4}, {1, 4, 4}}) {
    AttentionCase c{fmt::format("combine_{}_rows_{}_heads_{}_warps", rows, heads, row_warps),
                    {{"L", 5}, {"d", 80}, {"heads", 9}, {"kv_heads", 3}},
                    kLse,
                    {{"kv_lengths", "600,20"}}};
    out.push_back(
        {c, "split9", {{"combine", {{"rows", n(rows)}, {"heads_per_cta", n(heads)}, {"row_warps", n(row_warps)}}}}});
  }
  // More splits than lanes.
  out.push_back(
      {{"combine_40_splits", {{"L", 1}, {"kv_len", 1400}, {"d", 256}, {"heads", 2}, {"batch", 1}}, kLse}, "split40"});
  out.push_back(
      {{"merged_40_splits", {{"L", 1}, {"kv_len", 1400}, {"d", 256}, {"heads", 2}, {"batch", 1}}, kLse}, "merged40"});
  return out;
}

INSTANTIATE_TEST_SUITE_P(SlowCombine, AttentionDecode, testing::ValuesIn(combinations()), name_of);

/// The bytes of O and LSE after some launches in one order of the CTAs. Sums in another order differ in one of some
/// thousand elements of fp16.
std::map<std::string, std::vector<std::byte>> bytes_of(uint64_t order, int launches, std::vector<Edit> edits = {}) {
  AttentionCase c{"", {{"L", 3}, {"d", 128}, {"heads", 32}, {"kv_heads", 2}}, kCausalLse, {{"kv_lengths", "900,700"}}};
  c.dtype = DType::kFp16;
  Request request;
  request.problem = problem_of(c);
  request.variant = "merged7";
  request.keep_bytes = true;
  request.order = order;
  request.launches = launches;
  request.edits = std::move(edits);
  auto runs = run(request);
  EXPECT_TRUE(runs) << to_string(runs.error());
  if (!runs) return {};
  EXPECT_EQ(what_is_wrong(*runs), "");
  return runs->back().bytes;
}

TEST(SlowAttentionMerged, HasEqualBitsInEveryOrderOfCtasAndAtEveryLaunch) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto first = bytes_of(0, 1);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(bytes_of(0, 2), first);
  for (const uint64_t order : {1, 2, 3, 4}) EXPECT_EQ(bytes_of(order, 3), first) << "order " << order;
}

/// Otherwise the test above could not fail.
TEST(SlowAttentionMerged, WouldHaveOtherBitsIfTheLastCtaBeganWithItsOwnPart) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const std::vector<Edit> edits{{"attention/merge_splits.cuh", "for (int s = 0; s < splits; ++s) {",
                                 "for (int n = 0; n < splits; ++n) {\n      const int s = (tile.split + n) % splits;"}};
  const auto first = bytes_of(0, 1, edits);
  bool differs = false;
  for (const uint64_t order : {1, 2, 3, 4}) differs |= bytes_of(order, 1, edits) != first;
  EXPECT_TRUE(differs);
}

TEST(SlowAttentionMerged, ACounterThatIsNotZeroAfterTheLaunchIsFound) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request;
  request.problem = attention({{"L", 1}, {"kv_len", 300}, {"d", 64}, {"heads", 2}, {"batch", 1}});
  request.variant = "merged3";
  request.edits = {{"lib/arrival.cuh", ".inc.u32 %0, [%1], %2;", ".add.u32 %0, [%1], 1;"}};
  const auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_THAT(what_is_wrong(*runs),
              testing::HasSubstr("arrivals[0] is 3 after the launch; 0 was expected, as before it"));
}

}  // namespace
}  // namespace roofgen::test::attention_decode_test
