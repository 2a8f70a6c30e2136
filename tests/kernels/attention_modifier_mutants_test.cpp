// Mutants of modified attention, each with one wrong line: every mutant must be caught (docs/mutants.md).
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"

namespace roofgen::test::attention_modifier_mutants_test {
namespace {

constexpr const char *kFused = "attention/fused.cu.jinja", *kScores = "attention/scores.cu.jinja",
                     *kSoftmax = "attention/softmax.cu.jinja", *kPv = "attention/pv.cu.jinja",
                     *kShared = "attention/modifiers.cuh.jinja";

Problem complete(Problem p) {
  auto done = (*find_op("attention"))->complete(std::move(p));
  EXPECT_TRUE(done) << to_string(done.error());
  return *done;
}

/// Lengths that no tile divides, two heads with different slopes, a window, a softcap.
Problem everything() {
  Problem p{"attention",
            {{"L", 290}, {"kv_len", 321}, {"d", 64}, {"batch", 1}, {"heads", 2}},
            DType::kBf16,
            {{"causal", true}, {"lse", true}},
            {}};
  p.texts = {{"score", "s + 0.05 * slope[h] * (k - q) + bias[q]"}, {"mask", "q - k < 70 and q != 40"}};
  p.args = {{"slope", DType::kFp32, {"h"}}, {"bias", DType::kFp32, {"q"}}};
  p.reals["softcap"] = 3;
  return complete(std::move(p));
}

Problem mask_only() {
  Problem p{"attention",
            {{"L", 290}, {"kv_len", 321}, {"d", 64}, {"batch", 1}, {"heads", 1}},
            DType::kBf16,
            {{"lse", true}},
            {}};
  p.texts = {{"mask", "q - k < 70 and q != 40"}};
  return complete(std::move(p));
}

/// Fully masked rows that no analysis can predict.
Problem hidden_rows() {
  Problem p{"attention", {{"L", 150}, {"d", 64}, {"batch", 1}, {"heads", 1}}, DType::kBf16, {{"lse", true}}, {}};
  p.texts = {{"mask", "row[q] != 0"}};
  p.args = {{"row", DType::kInt8, {"q"}}};
  return complete(std::move(p));
}

Problem lengths() {
  Problem p{"attention", {{"d", 64}, {"heads", 2}}, DType::kBf16, {{"lse", true}}, {}};
  p.texts = {{"lengths", "70,129,33"}};
  return complete(std::move(p));
}

struct Mutant {
  const char *name, *variant;
  Problem (*problem)();
  Edit edit;
};

void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class ModifierMutants : public testing::TestWithParam<Mutant> {};

TEST_P(ModifierMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  Request request;
  request.problem = m.problem();
  request.variant = m.variant;
  request.edits = {m.edit};
  expect_caught(run(request), CaughtBy::kEither, 2);
}

const Mutant kMutants[] = {
    {"window_one_too_far",
     "fused",
     everything,
     {kFused, "if (!is_visible(e, t, q, k))", "if (!is_visible(e, t, q - 1, k))"}},
    {"slope_of_the_first_head",
     "fused",
     everything,
     {kFused, "heads, positions, batch, {{ \"head0\" if pack_gqa else \"head\" }},", "heads, positions, batch, 0,"}},
    {"tile_skipped_too_many",
     "fused",
     everything,
     {kFused, "rows{row0 + lead, end_row - 1 + lead}", "rows{row0 + lead, row0 + lead}"}},
    {"partial_tile_taken_for_whole", "fused", everything, {kFused, "if (here.whole) step(", "if (true) step("}},
    {"tail_taken_for_visible",
     "fused",
     mask_only,
     {kFused, "if (!kEvenKv && tile * BN + BN > kv_len) part.all = false;", ""}},
    {"softcap_after_the_mask",
     "fused",
     everything,
     {kFused, "if (!is_visible(e, t, q, k)) s = neg_inf();",
      "if (!is_visible(e, t, q, k)) s = modified_score(neg_inf(), e, t, q, k);"}},
    {"score_before_the_scale",
     "fused",
     everything,
     {kFused, "s = modified_score(s * scale, e, t, q, k);", "s = modified_score(s, e, t, q, k) * scale;"}},
    {"table_of_another_row",
     "fused",
     everything,
     {kFused, "tables.row_of(once, position_of(i, h))", "tables.row_of(once, position_of(i, 0))"}},
    {"positions_not_aligned_to_the_end",
     "fused",
     everything,
     {kFused, "const int position = row0 + warp_row + lane / 4 + lead;",
      "const int position = row0 + warp_row + lane / 4;"}},
    {"some_loaded_tile_not_the_next",
     "fused",
     mask_only,
     {kFused, "k_rows + key * k_copy.row_bytes", "k_rows + (key > 0 ? key - BN : 0) * k_copy.row_bytes"}},
    {"empty_row_divided",
     "fused",
     hidden_rows,
     {kFused, "{{ \"\" if modified or ragged else \"kCausal && \" }}sum == 0.0f;", "false;"}},
    {"one_token_too_many",
     "fused",
     lengths,
     {kFused, "q_len = kv_len = cu_seqlens[batch + 1] - first_token;",
      "q_len = kv_len = cu_seqlens[batch + 1] - first_token + 1;"}},
    {"one_key_too_few",
     "fused",
     lengths,
     {kFused, "q_len = kv_len = cu_seqlens[batch + 1] - first_token;",
      "q_len = cu_seqlens[batch + 1] - first_token, kv_len = q_len - 1;"}},
    {"values_of_the_first_sequence", "fused", lengths, {kFused, "  v += first_token * v_row_stride;\n", ""}},
    {"lse_of_the_first_sequence", "fused", lengths, {kFused, "* tokens + first_token\"", "* tokens\""}},
    {"scores_not_masked", "unfused", everything, {kScores, "    if (!here.whole)\n", "    if (false)\n"}},
    {"scores_of_the_wrong_tile",
     "unfused",
     everything,
     {kScores, "s_rows{{ \" + 2 * here.tile * BN\"", "s_rows{{ \" + 2 * (here.tile + 1) * BN\""}},
    {"softmax_reads_what_nobody_wrote",
     "unfused",
     mask_only,
     {kSoftmax, "piece[i].load(s + key, {{ \"readable(key, 8)\" if", "piece[i].load(s + key, {{ \"keys - key\" if"}},
    {"softmax_of_an_empty_row",
     "unfused",
     hidden_rows,
     {kSoftmax,
      "const float inverse = {{ \"sum == 0.0f ? 0.0f : \" if modified else \"\" }}rcp_approx(sum);\n#pragma unroll",
      "const float inverse = rcp_approx(sum);\n#pragma unroll"}},
    {"pv_reads_what_nobody_wrote", "unfused", mask_only, {kPv, "if (ahead.whole) return true;", "return true;"}},
    {"pv_of_the_first_sequence", "unfused", lengths, {kPv, "  v += first_token * v_row_stride;\n", ""}},
    {"bounds_of_the_next_block",
     "fused",
     mask_only,
     {kShared, "tile = block + bit;",
      "tile = block + bit + (bit > 0 ? 1 : 0) < tiles ? block + bit + (bit > 0 ? 1 : 0) : block + bit;"}},
};

INSTANTIATE_TEST_SUITE_P(Attention, ModifierMutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::attention_modifier_mutants_test
