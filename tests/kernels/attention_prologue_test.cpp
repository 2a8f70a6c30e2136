// Rotary embedding, appended keys and fp8 caches in the kernels of attention and in a kernel of their own: whole grids
// at small and odd sizes in the simulator, compared with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_prologue_test {
namespace {

/// What happens to Q, K and V before the scores.
struct Before {
  const char* name;
  Flags flags = {};
  Texts texts = {};
  int64_t rotary_dim = 0;
  bool fp8 = false;
};

const Before kBefore[] = {
    {"half", {}, {{"rotary", "half"}}},
    {"interleaved", {}, {{"rotary", "interleaved"}}},
    {"half_table_part", {{"rotary_table", true}}, {{"rotary", "half"}}, 32},
    {"interleaved_part", {}, {{"rotary", "interleaved"}}, 48},
    {"append", {{"append", true}}},
    {"append_half", {{"append", true}}, {{"rotary", "half"}}},
    {"append_interleaved_table", {{"append", true}, {"rotary_table", true}}, {{"rotary", "interleaved"}}},
    {"fp8", {}, {}, 0, true},
    {"fp8_half", {}, {{"rotary", "half"}}, 0, true},
    {"fp8_per_head_append", {{"append", true}, {"kv_scale_per_head", true}}, {}, 0, true},
    {"fp8_append_half", {{"append", true}}, {{"rotary", "half"}}, 0, true},
    {"fp8_per_head_append_interleaved",
     {{"append", true}, {"kv_scale_per_head", true}},
     {{"rotary", "interleaved"}},
     32,
     true},
};

const Before& before(const std::string& name) {
  return *std::find_if(std::begin(kBefore), std::end(kBefore), [&](const Before& b) { return b.name == name; });
}

/// Where K and V are, and what the scores go through.
struct Around {
  const char* name;
  Flags flags = {};
  Texts texts = {};
  int64_t page = 0;
  bool kv_lengths = false, lengths = false;
};

const Around kAround[] = {
    {"plain", kLse},
    {"causal", kCausalLse},
    {"page_16", kLse, {}, 16, true},
    {"window_page_64_hnd", kCausal, {{"mask", "q - k < 50"}, {"kv_layout", "hnd"}}, 64},
    {"score_kv_lengths", kCausalLse, {{"score", "s + 0.1 * slope[h] * (k - q)"}}, 0, true},
    {"lengths", kCausal, {}, 0, false, true},
};

using Case = VariantCase;

class AttentionPrologue : public testing::TestWithParam<Case> {};

TEST_P(AttentionPrologue, IsRight) { expect_right(GetParam()); }

std::string name_of(const testing::TestParamInfo<Case>& test) { return test.param.problem.name; }

Case combined(const Before& before, const Around& around, const std::string& variant, int64_t queries, int64_t keys,
              int64_t d, DType dtype) {
  Case out{{fmt::format("{}_{}_{}_L{}_kv{}_d{}", variant, before.name, around.name, queries, keys, d), {}}, variant};
  AttentionCase& c = out.problem;
  c.dtype = dtype;
  c.flags = before.flags;
  c.texts = before.texts;
  for (const auto& [name, value] : around.flags) c.flags[name] = value;
  for (const auto& [name, value] : around.texts) c.texts[name] = value;
  if (before.fp8) c.dtypes["kv"] = DType::kFp8;
  c.dims = {{"L", queries}, {"kv_len", keys}, {"d", d}, {"kv_heads", 2}, {"heads", 6}, {"batch", 2}};
  if (before.rotary_dim > 0) c.dims["rotary_dim"] = before.rotary_dim;
  if (around.texts.count("score")) c.args = {kSlope};
  if (around.page > 0) c.dims["page"] = around.page;
  if (around.lengths) {
    for (const char* name : {"L", "kv_len", "batch"}) c.dims.erase(name);
    c.texts["lengths"] = fmt::format("{},{},1", queries, keys % 70 + 1);
  }
  if (around.kv_lengths) {
    c.dims.erase("batch");
    c.dims["kv_len"] = keys + 10;
    c.texts["kv_lengths"] = fmt::format("{},{},{}", keys, queries, std::max(queries, keys / 3));
  }
  return out;
}

/// Every prologue in every surrounding, in changing variants and sizes.
std::vector<Case> combinations() {
  const std::string variants[] = {"fused", "prologue_fused", "split3", "unfused", "prologue_split2"};
  constexpr int64_t kQueries[] = {1, 4, 19}, kKeys[] = {97, 300}, kD[] = {64, 96, 128};
  std::vector<Case> out;
  size_t i = 0;
  for (const Before& before : kBefore) {
    size_t j = 0;
    for (const Around& around : kAround) {
      if (around.lengths && (before.flags.count("append") || before.fp8)) continue;
      out.push_back(combined(before, around, variants[(i + j) % 5], kQueries[(i + j / 2) % 3], kKeys[i % 2],
                             kD[(i / 2 + j) % 3], i % 4 == 3 ? DType::kFp16 : DType::kBf16));
      ++i;
      ++j;
    }
    ++i;  // the next prologue meets other variants
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Combinations, AttentionPrologue, testing::ValuesIn(combinations()), name_of);

/// Structured inputs, in both places of the prologue.
std::vector<Case> patterns() {
  std::vector<Case> out;
  for (const auto& [name, pattern] : {std::pair{"zero_query", InputPattern::kZeroQuery},
                                      {"one_hot", InputPattern::kOneHot},
                                      {"growing", InputPattern::kGrowing}})
    for (const char* prologue : {"half", "append_half", "fp8_per_head_append", "fp8_append_half"})
      for (const char* variant : {"fused", "prologue_fused"}) {
        out.push_back(combined(before(prologue), kAround[1], variant, 5, 260, 64, DType::kBf16));
        out.back().problem.name += std::string("_") + name;
        out.back().problem.pattern = pattern;
      }
  // Many keys and columns, whose roundings add up in the LSE.
  for (const char* prologue : {"half", "append_half"}) {
    out.push_back(combined(before(prologue), kAround[1], "prologue_split2", 100, 200, 128, DType::kBf16));
    out.back().problem.name += "_one_hot";
    out.back().problem.pattern = InputPattern::kOneHot;
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Patterns, AttentionPrologue, testing::ValuesIn(patterns()), name_of);

/// Packed sequences in e4m3: a kernel before attention writes V_plain too.
std::vector<Case> packed() {
  std::vector<Case> out;
  for (const char* prologue : {"fp8", "fp8_half"})
    for (const char* variant : {"fused", "prologue_fused", "unfused"})
      out.push_back(combined(before(prologue), kAround[5], variant, 19, 97, 64, DType::kBf16));
  return out;
}

INSTANTIATE_TEST_SUITE_P(Packed, AttentionPrologue, testing::ValuesIn(packed()), name_of);

ParamValue n(int64_t x) { return x; }

/// Tiles, stages, key warps and packed heads, of the kernel that rotates, appends and converts.
std::vector<Case> schedules() {
  std::vector<Case> out;
  for (const char* prologue : {"half", "append_half", "fp8_append_half"})
    for (const int64_t stages : {2, 3, 4})
      for (const bool packed : {false, true}) {
        const int64_t key_warps = stages == 2 ? 1 : stages == 3 ? 2 : 4;
        Case c = combined(before(prologue), kAround[2], stages == 3 ? "split3" : "fused", 9, 400, 64, DType::kBf16);
        c.problem.name += fmt::format("_stages{}{}", stages, packed ? "_packed" : "");
        c.pins[stages == 3 ? "partial" : "attention"] = {{"stages", n(stages)},
                                                         {"warps", n(4)},
                                                         {"warps_k", n(key_warps)},
                                                         {"BM", n(64 / key_warps)},
                                                         {"BN", n(key_warps == 1 ? 32 : 64)},
                                                         {"pack_gqa", packed},
                                                         {"swizzle", stages != 4},
                                                         {"q_in", std::string(packed ? "shared" : "registers")}};
        out.push_back(c);
      }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Schedules, AttentionPrologue, testing::ValuesIn(schedules()), name_of);

/// A prefill, whose row tiles append and rotate for each other.
std::vector<Case> prefill() {
  std::vector<Case> out;
  for (const char* prologue : {"half", "interleaved", "append_half", "fp8_append_half"})
    for (const char* variant : {"fused", "prologue_fused"})
      out.push_back(combined(before(prologue), kAround[1], variant, 200, 200, 64, DType::kBf16));
  // More queries than keys: the first queries are before the first key.
  for (const char* prologue : {"half", "interleaved"})
    for (const char* variant : {"fused", "prologue_fused"})
      out.push_back(combined(before(prologue), kAround[0], variant, 40, 23, 64, DType::kBf16));
  return out;
}

INSTANTIATE_TEST_SUITE_P(Prefill, AttentionPrologue, testing::ValuesIn(prefill()), name_of);

}  // namespace
}  // namespace roofgen::test::attention_prologue_test
