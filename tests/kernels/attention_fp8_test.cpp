// Attention of e4m3 Q, K and V (--dtype fp8, docs/kernels/attention-warpgroup.md): sizes, options, schedules and random
// problems against the reference.
#include <gtest/gtest.h>

#include "tests/generator/random_condition.h"
#include "tests/kernels/attention_case.h"
#include "tests/support/cases.h"

namespace roofgen::test::attention_fp8_test {
namespace {

ParamValue n(int64_t x) { return x; }

AttentionCase fp8(AttentionCase c) {
  c.dtype = DType::kFp8;
  return c;
}
AttentionCase with_pattern(AttentionCase c, InputPattern pattern, const std::string& name) {
  c.pattern = pattern;
  c.name += name;
  return c;
}
AttentionCase without_mask(AttentionCase c) {
  c.flags = kLse;
  return c;
}
AttentionCase capped(AttentionCase c) {
  c.softcap = 20;
  return c;
}

class Fp8 : public testing::TestWithParam<VariantCase> {};
TEST_P(Fp8, IsRight) {
  VariantCase c = GetParam();
  c.problem = fp8(c.problem);
  if (c.variant.empty()) c.variant = "warpgroup";
  expect_right(c);
}

VariantCase of(AttentionCase c, const Pins& p = {}) { return {std::move(c), "", {{"attention", p}}}; }
const Texts kPerHead{{"kv_scales", "head"}};

const AttentionCase kGrouped{"grouped",
                             {{"L", 150}, {"kv_len", 300}, {"d", 64}, {"batch", 1}, {"heads", 4}, {"kv_heads", 2}},
                             kCausalLse,
                             kPerHead};

TEST_EACH(Sizes, Fp8, of({"one_row_one_key", {{"L", 1}, {"d", 64}, {"batch", 2}, {"heads", 1}}, kLse}),
          of({"d32", {{"L", 131}, {"d", 32}, {"batch", 1}, {"heads", 2}}, kCausalLse}),
          of({"d96", {{"L", 127}, {"kv_len", 203}, {"d", 96}, {"batch", 1}, {"heads", 2}}, kLse}),
          of({"d128", {{"L", 161}, {"kv_len", 290}, {"d", 128}, {"batch", 1}, {"heads", 2}}, kCausal}),
          of({"d160", {{"L", 70}, {"d", 160}, {"batch", 1}, {"heads", 1}}, kCausalLse}),
          of({"d192", {{"L", 130}, {"kv_len", 350}, {"d", 192}, {"batch", 1}, {"heads", 1}}}),
          of({"d224", {{"L", 66}, {"d", 224}, {"batch", 1}, {"heads", 1}}, kLse}),
          of({"d256", {{"L", 130}, {"kv_len", 200}, {"d", 256}, {"batch", 1}, {"heads", 1}}, kCausal}),
          of({"fewer_keys", {{"L", 301}, {"kv_len", 99}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausalLse}),
          of(kGrouped));

TEST_EACH(Patterns, Fp8, of(with_pattern(kGrouped, InputPattern::kZeroQuery, "_zero_query")),
          of(with_pattern(kGrouped, InputPattern::kOneHot, "_one_hot")),
          of(with_pattern(kGrouped, InputPattern::kGrowing, "_growing")),
          of(with_pattern({"d128", {{"L", 300}, {"kv_len", 1055}, {"d", 128}, {"batch", 1}, {"heads", 1}}, kLse},
                          InputPattern::kGrowing, "_growing")),
          of(with_pattern({"d256", {{"L", 70}, {"kv_len", 555}, {"d", 256}, {"batch", 1}, {"heads", 1}}, kLse},
                          InputPattern::kZeroQuery, "_zero_query")));

// In packed sequences and caches NaN lie behind the last key of a sequence.
TEST_EACH(Options, Fp8, of({"packed", {{"d", 64}, {"heads", 2}}, kCausalLse, {{"lengths", "100,257,33"}}}),
          of({"packed_d256", {{"d", 256}, {"heads", 1}}, {}, {{"lengths", "130,33"}}}),
          of({"ragged", {{"L", 9}, {"d", 128}, {"heads", 2}}, kCausalLse, {{"kv_lengths", "77,290,33"}}}),
          of({"head_major", {{"L", 90}, {"kv_len", 140}, {"d", 64}, {"heads", 2}}, {}, {{"kv_layout", "hnd"}}}),
          of({"window", {{"L", 300}, {"d", 64}, {"heads", 2}, {"batch", 1}}, kCausal, {{"mask", "q - k < 70"}}}),
          of({"alibi",
              {{"L", 190}, {"d", 64}, {"heads", 2}, {"batch", 1}},
              kCausalLse,
              {{"score", "s + slope[h] * (k - q)"}, {"kv_scales", "head"}},
              {kSlope}}),
          of(capped({"softcap", {{"L", 190}, {"d", 128}, {"heads", 1}, {"batch", 1}}, kLse})));

const AttentionCase kSchedules{
    "", {{"L", 390}, {"kv_len", 421}, {"d", 64}, {"batch", 1}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, kPerHead};
INSTANTIATE_TEST_SUITE_P(
    Schedules, Fp8,
    testing::Values(of(kSchedules, {{"groups", n(1)}, {"pingpong", false}, {"BN", n(64)}}),
                    of(kSchedules, {{"groups", n(2)}, {"k_stages", n(1)}, {"v_stages", n(1)}, {"BN", n(96)}}),
                    of(kSchedules, {{"k_stages", n(3)}, {"v_stages", n(4)}, {"BN", n(64)}, {"pingpong", false}}),
                    of(kSchedules, {{"groups", n(2)}, {"BN", n(224)}, {"overlap", false}}),
                    of(kSchedules, {{"groups", n(2)}, {"BN", n(128)}, {"fma_exps", n(3)}}),
                    of(without_mask(kSchedules), {{"groups", n(2)}, {"BN", n(64)}, {"cluster", n(2)}}),
                    of(kSchedules, {{"groups", n(2)}, {"BN", n(64)}, {"cluster", n(2)}, {"section", n(2)}})));

// Keys of several CTAs, merged by a second kernel or by the last CTA; heads of a group as rows of a tile.
VariantCase split(AttentionCase c, const std::string& variant, InputPattern pattern = InputPattern::kNormal) {
  c.pattern = pattern;
  return {std::move(c), variant};
}
const AttentionCase kFew{
    "", {{"L", 9}, {"kv_len", 700}, {"d", 64}, {"batch", 2}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, kPerHead};
INSTANTIATE_TEST_SUITE_P(
    Splits, Fp8,
    testing::Values(
        split(kFew, "warpgroup"), split(kFew, "warpgroup_split3"), split(kFew, "warpgroup_merged3"),
        split(kFew, "warpgroup_split2", InputPattern::kZeroQuery),
        split(kFew, "warpgroup_merged2", InputPattern::kOneHot),
        split(kFew, "warpgroup_split5", InputPattern::kGrowing),
        split({"", {{"L", 1}, {"kv_len", 900}, {"d", 256}, {"batch", 1}, {"heads", 8}, {"kv_heads", 1}}, kLse},
              "warpgroup_merged4"),
        split({"", {{"L", 70}, {"kv_len", 500}, {"d", 128}, {"batch", 1}, {"heads", 2}, {"kv_heads", 1}}, kCausalLse},
              "warpgroup_split3"),
        split({"", {{"L", 5}, {"d", 64}, {"heads", 2}}, kCausalLse, {{"kv_lengths", "77,690,33"}}},
              "warpgroup_merged3")));

/// A problem and a legal schedule of it at random.
void expect_random_problems_right(int problems) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  RandomCondition random(20240711);
  for (int i = 0; i < problems; ++i) {
    AttentionCase c;
    c.dtype = DType::kFp8;
    const int64_t kv_heads = random.between(1, 2), length = random.between(1, 260);
    c.dims = {{"L", length},
              {"kv_len", random.between(1, 500)},
              {"d", 32 * random.between(1, 8)},
              {"batch", random.between(1, 2)},
              {"kv_heads", kv_heads},
              {"heads", kv_heads * random.between(1, 3)}};
    c.flags = {{"causal", random.below(2) == 0}, {"lse", random.below(2) == 0}};
    if (random.below(2) == 0) c.texts = kPerHead;
    constexpr InputPattern kPatterns[] = {InputPattern::kNormal, InputPattern::kNormal, InputPattern::kOneHot,
                                          InputPattern::kGrowing};
    c.pattern = kPatterns[random.below(4)];
    const int64_t groups = length <= 64 ? 1 : random.between(1, 2);
    VariantCase v{c,
                  "warpgroup",
                  {{"attention",
                    {{"groups", n(groups)},
                     {"pingpong", groups == 2 && random.below(2) == 0},
                     {"BN", n(32 * random.between(2, 4))},
                     {"overlap", random.below(2) == 0},
                     {"k_stages", n(random.between(1, 2))},
                     {"v_stages", n(random.between(1, 2))}}}}};
    SCOPED_TRACE(to_string(problem_of(c)));
    expect_right(v);
  }
}

TEST(Fp8Random, ProblemsAreRight) { expect_random_problems_right(4); }
TEST(SlowFp8Random, ProblemsAreRight) { expect_random_problems_right(12); }

}  // namespace
}  // namespace roofgen::test::attention_fp8_test
