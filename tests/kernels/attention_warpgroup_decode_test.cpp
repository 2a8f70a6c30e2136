// Attention by warpgroups as it is served: the heads of a group as rows of a tile, split keys, pages, a prologue, in 16
// bits and in e4m3. Whole grids at small and odd sizes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/attention_case.h"
#include "tests/support/cases.h"

namespace roofgen::test::attention_warpgroup_decode_test {
namespace {

ParamValue n(int64_t x) { return x; }
constexpr const char* kKernel = "attention/warpgroup.cu.jinja";
/// Q, K and V in e4m3, with a scale for each K/V head.
AttentionCase fp8(AttentionCase c) {
  c.dtype = DType::kFp8;
  c.texts["kv_scales"] = "head";
  return c;
}
bool is_split(const std::string& variant) { return variant.find("split") != std::string::npos; }
Request request_of(const VariantCase& c, const Pins& pins) {
  Request out;
  out.problem = problem_of(c.problem);
  out.variant = c.variant;
  out.pins[is_split(c.variant) ? "partial" : "attention"] = pins;
  return out;
}

/// A random problem and schedule; from this seed on in e4m3.
constexpr uint32_t kFirstOfFp8 = 41;
VariantCase random_case(uint32_t seed, Pins* pins) {
  std::mt19937 random(seed);
  const auto one_of = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % std::size(all)];
  };
  const int64_t group = one_of(1, 2, 3, 4, 6, 8, 16, 64), queries = one_of(1, 2, 5, 9, 70),
                page = one_of(0, 16, 64, 128);
  const bool e4m3 = seed >= kFirstOfFp8, causal = random() % 2, ragged = random() % 2;
  const bool rotates = random() % 4 == 0 && !e4m3, append = random() % 4 == 0 && !e4m3;
  AttentionCase c{fmt::format("random{}", seed), {{"L", queries}, {"d", one_of(64, 80, 96, 128)}}, {{"lse", true}}};
  c.flags["causal"] = causal;
  c.dims["kv_heads"] = group > 8 ? 1 : 2;
  c.dims["heads"] = group * c.dims["kv_heads"];
  c.dtype = one_of(DType::kBf16, DType::kFp16);
  const int64_t keys = queries + static_cast<int64_t>(random() % 500);
  if (ragged)
    c.texts["kv_lengths"] = fmt::format("{},{}", keys, queries + (keys - queries) / 5);
  else
    c.dims["kv_len"] = keys, c.dims["batch"] = 2;
  if (page > 0) c.dims["page"] = page;
  if (rotates) c.texts["rotary"] = "half";
  if (append) c.flags["append"] = true;
  if (random() % 4 == 0) c.texts["mask"] = "q - k < 90 + 20 * h";
  if (e4m3) c = fp8(c), c.dims["d"] = c.dims["d"] / 32 * 32;
  const int64_t splits = one_of(0, 2, 3, 5);
  const bool prologue = rotates || append;
  std::string variant = prologue ? "prologue_warpgroup" : "warpgroup";
  if (splits > 0) variant += fmt::format("_{}{}", prologue || random() % 2 ? "split" : "merged", splits);
  const bool packed = group > 1 && random() % 3;
  const int64_t groups = (packed ? queries * group : queries) > 64 ? one_of(1, 2) : 1;
  const int64_t tile = page > 0 ? one_of(64, 128) : one_of(64, e4m3 ? 96 : 80, 128);
  *pins = {{"groups", n(groups)},         {"BN", n(tile)},
           {"k_stages", n(one_of(1, 2))}, {"v_stages", n(one_of(1, 2))},
           {"overlap", random() % 3 > 0}, {"pingpong", groups > 1 && random() % 2},
           {"pack_gqa", packed},          {"ctas_per_sm", n(groups == 1 && tile == 64 ? one_of(1, 2) : 1)}};
  return {c, variant};
}

class DecodeRandom : public testing::TestWithParam<uint32_t> {};

TEST_P(DecodeRandom, IsRight) {
  Pins pins;
  const VariantCase c = random_case(GetParam(), &pins);
  const Request request = request_of(c, pins);
  expect_right(request);
}

INSTANTIATE_TEST_SUITE_P(AttentionWarpgroup, DecodeRandom, testing::Range<uint32_t>(1, kFirstOfFp8));
INSTANTIATE_TEST_SUITE_P(AttentionWarpgroupFp8, DecodeRandom, testing::Range(kFirstOfFp8, kFirstOfFp8 + 24));

// ---- The even split --------------------------------------------------------------------------------

/// On a device of few SMs a CTA has several tiles.
struct Even {
  std::string name;
  AttentionCase problem;
  std::string variant = "warpgroup_even3";
  int64_t sms = 132;
  Pins pins = {};
};
void PrintTo(const Even& c, std::ostream* out) { *out << c.name; }
Request request_of(const Even& c) {
  Pins pins = c.pins;
  pins.insert({{"groups", n(1)}, {"pingpong", false}, {"BN", n(64)}, {"k_stages", n(2)}, {"v_stages", n(2)}});
  Request out = request_of(VariantCase{c.problem, c.variant}, pins);
  out.sms = c.sms;
  return out;
}
/// 60 rows: all warps have some.
const AttentionCase kSixty{
    "", {{"L", 20}, {"kv_len", 421}, {"d", 64}, {"heads", 6}, {"kv_heads", 2}, {"batch", 2}}, kCausalLse};
const AttentionCase kEqual{
    "", {{"L", 1}, {"kv_len", 640}, {"d", 128}, {"heads", 16}, {"kv_heads", 2}, {"batch", 3}}, kLse};
const AttentionCase kUneven{
    "", {{"L", 4}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, {{"kv_lengths", "600,40,1300,64,700"}}};
/// A tile of keys each, so that copies of Q are far ahead.
const AttentionCase kTiny{
    "", {{"L", 4}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, {{"kv_lengths", "300,20,20,20,20,20"}}};
AttentionCase in_pages(AttentionCase c, int64_t page) {
  c.dims["page"] = page;
  return c;
}
AttentionCase in_windows(AttentionCase c) {
  c.texts["mask"] = "q - k < 60 + 90 * h";
  return c;
}

class EvenSplit : public testing::TestWithParam<Even> {};

TEST_P(EvenSplit, IsRight) { expect_right(request_of(GetParam())); }

TEST_EACH(AttentionWarpgroup, EvenSplit, Even{"two_parts", kSixty}, Even{"many_parts", kEqual, "warpgroup_even9"},
          Even{"several_pairs", kEqual, "warpgroup_even3", 2}, Even{"one_cta", kEqual, "warpgroup_even3", 1},
          Even{"a_run_for_each_tile", kSixty, "warpgroup_even30"}, Even{"uneven", kUneven, "warpgroup_even5"},
          Even{"uneven_pairs", kUneven, "warpgroup_even3", 3}, Even{"uneven_many_parts", kUneven, "warpgroup_even20"},
          Even{"forty_sequences",
               {"",
                {{"L", 1}, {"d", 64}, {"heads", 2}, {"kv_heads", 1}},
                kLse,
                {{"kv_lengths",
                  [] {
                    std::string lengths = "300";
                    for (int i = 1; i < 40; ++i) lengths += fmt::format(",{}", 1 + i * 53 % 200);
                    return lengths;
                  }()}}},
               "warpgroup_even12"},
          Even{"pages", in_pages(kUneven, 64), "warpgroup_even5"},
          Even{"small_pages", in_pages(kEqual, 16), "warpgroup_even3", 4},
          Even{"mask", in_windows(kUneven), "warpgroup_even5", 5},
          Even{"two_ctas_on_an_sm", kEqual, "warpgroup_even3", 2, {{"ctas_per_sm", n(2)}}},
          Even{"heads_apart", kUneven, "warpgroup_even5", 3, {{"pack_gqa", false}}},
          Even{"no_overlap", kUneven, "warpgroup_even3", 3, {{"overlap", false}, {"rescale", std::string("lazy")}}},
          Even{"fp8", fp8(kSixty)}, Even{"fp8_many_parts", fp8(kEqual), "warpgroup_even9"},
          Even{"fp8_one_cta", fp8(kEqual), "warpgroup_even3", 1},
          Even{"fp8_uneven_many_parts", fp8(kUneven), "warpgroup_even20"},
          Even{"fp8_pages", fp8(in_pages(kUneven, 64)), "warpgroup_even5"},
          Even{"fp8_small_pages", fp8(in_pages(kEqual, 16)), "warpgroup_even3", 4},
          Even{"fp8_mask", fp8(in_windows(kUneven)), "warpgroup_even5", 5},
          Even{"fp8_two_ctas_on_an_sm", fp8(kEqual), "warpgroup_even3", 2, {{"ctas_per_sm", n(2)}}},
          Even{"fp8_heads_apart", fp8(kUneven), "warpgroup_even5", 3, {{"pack_gqa", false}}});

// ---- Persistent CTAs -------------------------------------------------------------------------------

Request of_few_ctas(const Even& c) {
  Pins pins = c.pins;
  pins["persistent"] = true;
  pins.insert({{"groups", n(2)},
               {"pingpong", true},
               {"BN", n(64)},
               {"k_stages", n(2)},
               {"v_stages", n(2)},
               {"pack_gqa", false}});
  Request out = request_of(VariantCase{c.problem, "warpgroup"}, pins);
  out.sms = c.sms;
  return out;
}
/// 3 x 6 tiles of 128 rows for each of two sequences.
const AttentionCase kTriangles{"", {{"L", 300}, {"d", 64}, {"heads", 6}, {"kv_heads", 3}, {"batch", 2}}, kCausalLse};
const AttentionCase kSquares{"", {{"L", 200}, {"kv_len", 333}, {"d", 128}, {"heads", 4}, {"batch", 2}}, kLse};
/// A CTA has keys for the second half of the rows only.
const AttentionCase kFewKeys{"", {{"L", 300}, {"kv_len", 77}, {"d", 64}, {"heads", 4}, {"batch", 2}}, kCausalLse};
const AttentionCase kPackedLengths{
    "", {{"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, {{"lengths", "300,20,129,1,260"}}};
const AttentionCase kCaches{
    "", {{"L", 150}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, {{"kv_lengths", "600,160,333"}}};
const AttentionCase kThreeHeads{
    "", {{"L", 60}, {"kv_len", 421}, {"d", 64}, {"heads", 6}, {"kv_heads", 2}, {"batch", 2}}, kCausalLse};

class Persistent : public testing::TestWithParam<Even> {};

TEST_P(Persistent, IsRight) { expect_right(of_few_ctas(GetParam())); }

TEST_EACH(AttentionWarpgroup, Persistent, Even{"causal", kTriangles, "", 5}, Even{"one_cta", kTriangles, "", 1},
          Even{"whole_rounds", kTriangles, "", 9}, Even{"a_cta_for_each_tile", kTriangles, "", 132},
          Even{"all_keys", kSquares, "", 3}, Even{"rows_without_keys", kFewKeys, "", 4},
          Even{"no_overlap", kTriangles, "", 4, {{"overlap", false}}},
          Even{"three_groups", kTriangles, "", 5, {{"groups", n(3)}}},
          Even{"one_group", kTriangles, "", 7, {{"groups", n(1)}, {"pingpong", false}}},
          Even{"no_turns", kSquares, "", 3, {{"pingpong", false}, {"rescale", std::string("lazy")}}},
          Even{"one_place_for_queries", kSquares, "", 3, {{"BN", n(176)}}},
          Even{"one_stage", kSquares, "", 3, {{"k_stages", n(1)}, {"v_stages", n(1)}}},
          Even{"packed_lengths", kPackedLengths, "", 5}, Even{"caches", kCaches, "", 5},
          Even{"pages", in_pages(kCaches, 64), "", 5}, Even{"mask", in_windows(kCaches), "", 5},
          Even{"heads_as_rows", kThreeHeads, "", 3, {{"pack_gqa", true}}}, Even{"fp8_causal", fp8(kTriangles), "", 5},
          Even{"fp8_one_cta", fp8(kTriangles), "", 1}, Even{"fp8_all_keys", fp8(kSquares), "", 3},
          Even{"fp8_rows_without_keys", fp8(kFewKeys), "", 4},
          Even{"fp8_one_group", fp8(kTriangles), "", 7, {{"groups", n(1)}, {"pingpong", false}}},
          Even{"fp8_three_groups", fp8(kTriangles), "", 5, {{"groups", n(3)}}},
          Even{"fp8_one_place_for_queries", fp8(kSquares), "", 3, {{"BN", n(192)}, {"v_stages", n(3)}}},
          Even{"fp8_packed_lengths", fp8(kPackedLengths), "", 5}, Even{"fp8_pages", fp8(in_pages(kCaches, 64)), "", 5},
          Even{"fp8_mask", fp8(in_windows(kCaches)), "", 5},
          Even{"two_ctas_on_an_sm",
               kEqual,
               "",
               1,
               {{"groups", n(1)}, {"pingpong", false}, {"pack_gqa", true}, {"ctas_per_sm", n(2)}}});

}  // namespace
}  // namespace roofgen::test::attention_warpgroup_decode_test
