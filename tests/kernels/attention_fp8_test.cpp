// Attention of e4m3 Q, K and V (--dtype fp8, docs/attention-warpgroup.md): sizes, options, schedules and random
// problems against the reference; kernels with one wrong line must be caught.
#include <gtest/gtest.h>

#include "tests/generator/random_condition.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/expect_caught.h"
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

constexpr const char *kKernel = "attention/warpgroup.cu.jinja", *kTurn = "attention/warpgroup_fp8.cuh",
                     *kSoften = "attention/warpgroup_softmax.cuh.jinja";

struct Mutant {
  const char* name;
  std::vector<Edit> edits;
  CaughtBy by;
  /// In the simulator's own order of warps, three early arrivals of three warps end the right phase: another order
  /// tells.
  uint64_t order = 0;
  bool ragged = false;  ///< caches of several lengths, with NaN behind the last key
  bool splits = false;  ///< of the keys, of few rows
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class Fp8Mutants : public testing::TestWithParam<Mutant> {};
TEST_P(Fp8Mutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  AttentionCase c = fp8(kSchedules);
  if (m.ragged) c = fp8({"", {{"L", 9}, {"d", 64}, {"heads", 2}}, kCausalLse, {{"kv_lengths", "77,290,33"}}});
  Request request;
  if (m.splits) c = fp8(kFew);
  request.problem = problem_of(c);
  request.variant = m.splits ? "warpgroup_merged3" : "warpgroup";
  // With fewer stages of K, the wait for K alone keeps the loads of V behind.
  if (!m.splits) request.pins["attention"] = {{"BN", n(64)}, {"k_stages", n(3)}};
  request.edits = m.edits;
  request.order = m.order;
  expect_caught(run(request), m.by, 2);
}

const Mutant kMutants[] = {
    {"turned_without_proxy_fence",
     {{kKernel, "        async_proxy_fence();\n        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full",
       "        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full"}},
     CaughtBy::kFinding},
    {"proxy_fence_before_turning",
     {{kKernel, "        async_proxy_fence();\n        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full",
       "        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full"},
      {kKernel, "        barrier_wait(v_empty + 8 * v_place.stage, v_place.parity ^ 1);\n{% if has_tail",
       "        barrier_wait(v_empty + 8 * v_place.stage, v_place.parity ^ 1);\n        async_proxy_fence();\n{% if "
       "has_tail"}},
     CaughtBy::kFinding},
    {"turned_without_warp_barrier",
     {{kKernel, "        async_proxy_fence();\n        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full",
       "        async_proxy_fence();\n        if (lane == 0) barrier_arrive(v_full"}},
     CaughtBy::kFinding},
    {"turned_tile_reused_too_early",
     {{kKernel, "        barrier_wait(v_empty + 8 * v_place.stage, v_place.parity ^ 1);\n{% if has_tail",
       "{% if has_tail"}},
     CaughtBy::kFinding},
    {"raw_tile_not_waited_for",
     {{kKernel, "        barrier_wait(raw_full + 8 * raw_place.stage, raw_place.parity);\n", ""}},
     CaughtBy::kFinding},
    {"raw_tile_never_released",
     {{kKernel, "        if (lane == 0) barrier_arrive(raw_empty + 8 * raw_place.stage);", ""}},
     CaughtBy::kFinding},
    {"raw_tile_released_before_it_is_turned",
     {{kKernel, "        if (lane == 0) barrier_arrive(raw_empty + 8 * raw_place.stage);", ""},
      {kKernel, "        barrier_wait(v_empty + 8 * v_place.stage, v_place.parity ^ 1);\n{% if has_tail",
       "        if (lane == 0) barrier_arrive(raw_empty + 8 * raw_place.stage);\n"
       "        barrier_wait(v_empty + 8 * v_place.stage, v_place.parity ^ 1);\n{% if has_tail"}},
     CaughtBy::kFinding},
    {"turned_tile_full_after_one_warp",
     {{kKernel, "barrier_init(v_full + 8 * s, {{ \"kTurners\" if fp8", "barrier_init(v_full + 8 * s, {{ \"1\" if fp8"}},
     CaughtBy::kFinding,
     1},
    {"raw_tile_empty_after_one_warp",
     {{kKernel, "barrier_init(raw_empty + 8 * s, kTurners * kCluster);", "barrier_init(raw_empty + 8 * s, kCluster);"}},
     CaughtBy::kFinding,
     1},
    {"raw_ring_without_phase",
     {{kKernel, "        raw_place.advance();\n        v_place", "        v_place"}},
     CaughtBy::kFinding},
    {"last_unit_not_turned",
     {{kTurn, "kUnits = BN / 32 * kAcross;", "kUnits = BN / 32 * kAcross - 1;"}},
     CaughtBy::kFinding},
    {"rows_behind_a_sequence_not_cleared",
     {{kKernel, "turn_tile<kTurners, true>(from", "turn_tile<kTurners, false>(from"}},
     CaughtBy::kComparison,
     0,
     true},
    {"one_row_too_few_cleared",
     {{kTurn, "const int left = keys -", "const int left = keys + 1 -"}},
     CaughtBy::kComparison,
     0,
     true},
    {"one_row_too_many_cleared",
     {{kTurn, "const int left = keys -", "const int left = keys - 1 -"}},
     CaughtBy::kComparison,
     0,
     true},
    {"keys_in_their_order_in_p",
     {{kTurn, "s[block][row], s[block][row + 1], s[block + 1][row], s[block + 1][row + 1])",
       "s[block][row], s[block + 1][row], s[block][row + 1], s[block + 1][row + 1])"}},
     CaughtBy::kComparison},
    {"rows_of_p_exchanged",
     {{kTurn, "block = 4 * i + e / 2 * 2, row = e % 2 * 2", "block = 4 * i + e % 2 * 2, row = e / 2 * 2"}},
     CaughtBy::kComparison},
    {"keys_in_their_order_in_v",
     {{kTurn, "__byte_perm(r[b][0], r[b][1], 0x6420)", "__byte_perm(r[b][0], r[b][1], 0x6240)"}},
     CaughtBy::kComparison},
    {"columns_exchanged",
     {{kTurn, "__byte_perm(r[b][0], r[b][1], 0x6420), __byte_perm(r[b][0], r[b][1], 0x7531)",
       "__byte_perm(r[b][0], r[b][1], 0x7531), __byte_perm(r[b][0], r[b][1], 0x6420)"}},
     CaughtBy::kComparison},
    {"columns_of_o_in_the_order_of_registers",
     {{kKernel, "{pack2<Half>(o[n][2 * h] * inverse[h], o[n + 1][2 * h] * inverse[h]),",
       "{pack2<Half>(o[n][2 * h] * inverse[h], o[n][2 * h + 1] * inverse[h]),"},
      {kKernel, "pack2<Half>(o[n][2 * h + 1] * inverse[h], o[n + 1][2 * h + 1] * inverse[h])});",
       "pack2<Half>(o[n + 1][2 * h] * inverse[h], o[n + 1][2 * h + 1] * inverse[h])});"}},
     CaughtBy::kComparison},
    {"halves_of_a_step_exchanged",
     {{kTurn, "chunk % Turned::kChunks + lane / 16)", "chunk % Turned::kChunks + 1 - lane / 16)"}},
     CaughtBy::kComparison},
    {"turned_tile_not_swizzled",
     {{kTurn, "slab + Turned::offset(lane % 16, chunk % Turned::kChunks + lane / 16)",
       "slab + lane % 16 * Turned::kPitch + 16 * (chunk % Turned::kChunks + lane / 16)"}},
     CaughtBy::kComparison},
    {"values_of_the_same_keys",
     {{kTurn, "+ 32 * i % Turned::kPitch)", "+ 16 * i % Turned::kPitch)"}},
     CaughtBy::kEither},
    {"q_scale_missing",
     {{kKernel, "unit_scale * q_scale[kv_scale] * k_scale", "unit_scale * k_scale"}},
     CaughtBy::kComparison},
    {"k_scale_missing",
     {{kKernel, "unit_scale * q_scale[kv_scale] * k_scale[kv_scale];", "unit_scale * q_scale[kv_scale];"}},
     CaughtBy::kComparison},
    {"v_scale_missing",
     {{kKernel, "if even else \" * v_scale[kv_scale]\"", "if even else \"\""}},
     CaughtBy::kComparison},
    {"scales_of_the_first_head",
     {{kKernel, "{{ (\"kv_head\" if pack_gqa else \"head / group\") if kv_scale_per_head else \"0\" }}", "0"}},
     CaughtBy::kComparison},
    {"scales_of_the_query_head",
     {{kKernel, "{{ (\"kv_head\" if pack_gqa else \"head / group\") if kv_scale_per_head else \"0\" }}",
       "head % group"}},
     CaughtBy::kComparison},
    {"lse_of_the_larger_p", {{kKernel, "(\" - kPExponent\" if fp8 else \"\")", "\"\""}}, CaughtBy::kComparison},
    {"parts_with_lse_of_the_larger_p",
     {{kKernel, "+ log2_approx(sum){{ \" - kPExponent\" if fp8 and not even else \"\" }};", "+ log2_approx(sum);"}},
     CaughtBy::kComparison,
     0,
     false,
     true},
    {"columns_of_parts_in_the_order_of_registers",
     {{kKernel, "make_float4(o[n][2 * h] * inverse[h], o[n + 1][2 * h] * inverse[h], o[n][2 * h + 1]",
       "make_float4(o[n][2 * h] * inverse[h], o[n][2 * h + 1] * inverse[h], o[n + 1][2 * h]"}},
     CaughtBy::kComparison,
     0,
     false,
     true},
    {"p_beyond_e4m3", {{kSoften, "kPExponent = 8.0f", "kPExponent = 11.0f"}}, CaughtBy::kComparison},
    {"p_below_e4m3", {{kSoften, "kPExponent = 8.0f", "kPExponent = -4.0f"}}, CaughtBy::kComparison},
};

INSTANTIATE_TEST_SUITE_P(Attention, Fp8Mutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::attention_fp8_test
