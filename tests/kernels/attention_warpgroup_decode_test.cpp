// Attention by warpgroups as it is served: the heads of a group as rows of a tile, split keys, pages, a prologue, in 16
// bits and in e4m3. Whole grids at small and odd sizes, and mutants of each protocol.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/attention_case.h"
#include "tests/kernels/expect_caught.h"
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

constexpr const char *kAdd = "attention/add_parts.cuh.jinja", *kEvenSplit = "attention/even_split.cuh.jinja";

struct EvenMutant {
  std::string name;
  Even run;
  std::vector<Edit> edits;
  CaughtBy by = CaughtBy::kEither;
};
void PrintTo(const EvenMutant& m, std::ostream* out) { *out << m.name; }

class EvenMutants : public testing::TestWithParam<EvenMutant> {};

TEST_P(EvenMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request = request_of(GetParam().run);
  request.edits = GetParam().edits;
  expect_caught(run(request), GetParam().by, 5);
}

TEST_EACH(AttentionWarpgroup, EvenMutants,
          EvenMutant{"last_tile_of_a_run_left_out",
                     {"", kSixty},
                     {{kEvenSplit, "last = at - pair_begin - 1;", "last = max(first, at - pair_begin - 2);"}},
                     CaughtBy::kComparison},
          EvenMutant{"tile_in_two_runs",
                     {"", kSixty},
                     {{kEvenSplit, "first = at - pair_begin;", "first = max(0, at - pair_begin - 1);"}},
                     CaughtBy::kComparison},
          EvenMutant{"lengths_of_the_sequence_before",
                     {"", kUneven, "warpgroup_even5"},
                     {{kEvenSplit, "behind += heads * of(++batch);", "behind += heads * of(batch), ++batch;"}}},
          EvenMutant{"one_part_too_few",
                     {"", kEqual, "warpgroup_even9"},
                     {{kAdd, "for (int s = 1; s < parts; ++s)", "for (int s = 2; s < parts; ++s)"}},
                     CaughtBy::kComparison},
          EvenMutant{"parts_not_waited_for",
                     {"", kSixty},
                     {{kAdd, "    if (thread == 128) collect(arrivals + walk.pair(), parts - 1);\n", ""}}},
          EvenMutant{"parts_waited_for_by_one_warp",
                     {"", kSixty},
                     {{kAdd, "    named_barrier(1 + 2 * kGroups, 128 * kGroups);\n", ""}},
                     CaughtBy::kFinding},
          EvenMutant{"arrival_before_the_part",
                     {"", kSixty},
                     {{kKernel, "    named_barrier(1 + 2 * kGroups, 128 * kGroups);\n    if (thread == 128) arrive",
                       "    if (thread == 128) arrive"}},
                     CaughtBy::kFinding},
          EvenMutant{"one_counter_for_all",
                     {"", kSixty},
                     {{kKernel, "arrive(arrivals + walk.pair(), kNeverLast)", "arrive(arrivals, kNeverLast)"}}},
          EvenMutant{"weight_counted_by_each_lane",
                     {"", kSixty},
                     {{kAdd, "(lane % 4 == 0 ? weight : 0.0f)", "weight"}},
                     CaughtBy::kComparison},
          EvenMutant{"own_part_not_rescaled",
                     {"", kSixty},
                     {{kAdd, "o[n][2 * h] * own + x.x * weight;\n          o[n][2",
                       "o[n][2 * h] + x.x * weight;\n          o[n][2"}},
                     CaughtBy::kComparison},
          EvenMutant{
              "queries_overwritten",
              {"", kTiny, "warpgroup_even3", 1},
              {{kKernel, "      if (lane == 0) barrier_wait(q_empty + 8 * q_place.stage, q_place.parity ^ 1);\n", ""}},
              CaughtBy::kFinding},
          EvenMutant{"queries_of_the_tile_before",
                     {"", kEqual, "warpgroup_even3", 1},
                     {{kKernel, "  barrier_wait(q_full + 8 * q_place.stage, q_place.parity);\n", ""}},
                     CaughtBy::kFinding},
          EvenMutant{"last_values_not_released",
                     {"", kEqual, "warpgroup_even3", 1},
                     {{kKernel, "{% if several %}\n    release_v();\n{% endif %}\n", ""}},
                     CaughtBy::kFinding},
          EvenMutant{"fp8_parts_times_the_scale_of_v",
                     {"", fp8(kSixty)},
                     {{kKernel, "(split > 0 ? 1.0f : v_scale[kv_scale])", "v_scale[kv_scale]"}},
                     CaughtBy::kComparison},
          EvenMutant{"fp8_parts_with_lse_of_the_true_p",
                     {"", fp8(kSixty)},
                     {{kKernel, "if fp8 and not even else", "if fp8 else"}},
                     CaughtBy::kComparison},
          EvenMutant{"fp8_columns_of_parts_in_the_order_of_registers",
                     {"", fp8(kSixty)},
                     {{kAdd, "o[n + 1][2 * h] * own + x.y", "o[n + 1][2 * h] * own + x.z"}},
                     CaughtBy::kComparison},
          EvenMutant{"fp8_turned_ring_begun_again",
                     {"", fp8(kEqual), "warpgroup_even3", 1},
                     {{kKernel, "      RingPlace<kVStages> v_place;\n{% if several %}\n      {{ walk }}",
                       "      RingPlace<kVStages> v_place, start;\n{% if several %}\n      {{ walk }}"},
                      {kKernel, "      Tiles tiles{{ tiles }};\n#pragma unroll 1\n",
                       "      v_place = start;\n      Tiles tiles{{ tiles }};\n#pragma unroll 1\n"}},
                     CaughtBy::kFinding});

constexpr const char* kWalk = "attention/row_walk.cuh.jinja";

class PersistentMutants : public testing::TestWithParam<EvenMutant> {};

TEST_P(PersistentMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Request request = of_few_ctas(GetParam().run);
  request.edits = GetParam().edits;
  expect_caught(run(request), GetParam().by, 5);
}

TEST_EACH(
    AttentionWarpgroup, PersistentMutants,
    EvenMutant{"last_round_left_out",
               {"", kTriangles, "", 5},
               {{kWalk, "if (tile >= row_tiles * columns) return false;",
                 "if (begin + static_cast<int>(gridDim.x) > row_tiles * columns) return false;"}}},
    EvenMutant{
        "tiles_behind_the_last", {"", kTriangles, "", 5}, {{kWalk, "if (tile >= row_tiles", "if (begin >= row_tiles"}}},
    EvenMutant{"round_begins_a_tile_late",
               {"", kTriangles, "", 5},
               {{kWalk, "begin += gridDim.x;", "begin += gridDim.x + 1;"}}},
    EvenMutant{"rounds_turned_by_one",
               {"", kTriangles, "", 5},
               {{kWalk, "turn = gridDim.x - 1 - turn;", "turn = gridDim.x - turn;"}}},
    EvenMutant{"head_of_the_first_sequence_only",
               {"", kTriangles, "", 5},
               {{kWalk, "    batch = __shfl_sync(kAllLanes, column / heads, 0);", "    batch = 0;"}}},
    EvenMutant{"rows_and_heads_exchanged",
               {"", kTriangles, "", 5},
               {{kWalk, "tile / columns, 0), column = tile - behind * columns",
                 "tile / row_tiles, 0), column = tile - behind * row_tiles"}}},
    EvenMutant{"queries_overwritten",
               {"", kSquares, "", 3, {{"BN", n(176)}}},
               {{kKernel, "      if (lane == 0) barrier_wait(q_empty + 8 * q_place.stage, q_place.parity ^ 1);\n", ""}},
               CaughtBy::kFinding},
    EvenMutant{"queries_of_the_tile_before",
               {"", kTriangles, "", 5},
               {{kKernel, "  barrier_wait(q_full + 8 * q_place.stage, q_place.parity);\n", ""}},
               CaughtBy::kFinding},
    EvenMutant{"queries_never_released",
               {"", kTriangles, "", 5},
               {{kKernel, "  if (lane == 0) barrier_arrive(q_empty + 8 * q_place.stage);\n", ""}},
               CaughtBy::kFinding},
    EvenMutant{"output_released_before_it_is_stored",
               {"", kSquares, "", 3, {{"BN", n(176)}}},
               {{kKernel, "    tensor_store_wait<0>();\n", ""}},
               CaughtBy::kFinding},
    EvenMutant{"last_values_not_released",
               {"", kTriangles, "", 5},
               {{kKernel, "{% if several %}\n    release_v();\n{% endif %}\n", ""}},
               CaughtBy::kFinding},
    EvenMutant{
        "turns_begun_once",
        {"", kTriangles, "", 5},
        {{kKernel, "      turns.begin();", "      if (walk.begin == static_cast<int>(gridDim.x)) turns.begin();"}},
        CaughtBy::kFinding},
    EvenMutant{"fp8_output_in_the_place_of_queries_only",
               {"", fp8(kSquares), "", 3},
               {{kKernel, "kQPlaceBytes = 2 * BM * D;", "kQPlaceBytes = kQBytes;"}},
               CaughtBy::kFinding},
    EvenMutant{"fp8_scale_of_the_first_head",
               {"", fp8(kTriangles), "", 5},
               {{kKernel, "\"head / group\") if kv_scale_per_head", "\"0\") if kv_scale_per_head"}},
               CaughtBy::kComparison});

struct Mutant {
  const char* name;
  const VariantCase& run;
  std::vector<Edit> edits;
  CaughtBy by = CaughtBy::kEither;
  Pins pins = {};
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

constexpr const char *kBoxes = "attention/page_boxes.cuh.jinja", *kRows = "attention/packed_rows.cuh.jinja",
                     *kMerge = "attention/merge_splits.cuh.jinja";

/// Three heads share K and V: no tile of 64 rows is full.
const AttentionCase kThree{
    "", {{"L", 25}, {"kv_len", 421}, {"d", 64}, {"heads", 6}, {"kv_heads", 2}, {"batch", 2}}, kCausalLse};
const AttentionCase kPaged{
    "", {{"L", 3}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"page", 16}}, kCausalLse, {{"kv_lengths", "421,700"}}};
const AttentionCase kLargePages{
    "", {{"L", 3}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"page", 256}}, kCausalLse, {{"kv_lengths", "421,700"}}};
const AttentionCase kShort{
    "", {{"L", 4}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}}, kCausalLse, {{"kv_lengths", "600,40"}}};
AttentionCase rotated(AttentionCase c) {
  c.texts["rotary"] = "half";
  return c;
}
AttentionCase masked(AttentionCase c) {
  c.texts["mask"] = "q - k < 60 + 90 * h";
  return c;
}
AttentionCase scored(AttentionCase c) {
  c.texts["score"] = "s + 0.1 * slope[h] * (k - q)";
  c.args = {kSlope};
  return c;
}
AttentionCase ends_with_a_tile(AttentionCase c) {
  c.dims["page"] = 64;
  c.dims["batch"] = 2;
  c.dims["kv_len"] = 448;
  c.texts.erase("kv_lengths");
  return c;
}
AttentionCase of_equal_lengths(AttentionCase c) {
  c.dims["batch"] = 2;
  c.dims["kv_len"] = 421;
  c.texts.erase("kv_lengths");
  return c;
}
AttentionCase wide(AttentionCase c) {
  c.dims["d"] = 256;
  return c;
}
const VariantCase kPacked{kThree, "warpgroup"}, kMasked{masked(kThree), "warpgroup"},
    kScored{scored(kThree), "warpgroup"}, kSplit{kShort, "warpgroup_split3"},
    kMaskedSplit{masked(kShort), "warpgroup_split3"}, kMerged{kThree, "warpgroup_merged3"}, kPages{kPaged, "warpgroup"},
    kParts{kLargePages, "warpgroup_split2"}, kWhole{ends_with_a_tile(kPaged), "warpgroup"},
    kPrologue{rotated(kThree), "prologue_warpgroup"}, kPagesFp8{fp8(kPaged), "warpgroup"},
    kPartsFp8{fp8(kLargePages), "warpgroup_merged2"}, kEqualFp8{fp8(of_equal_lengths(kPaged)), "warpgroup"},
    kWideFp8{fp8(wide(kPaged)), "warpgroup"};

class DecodeMutants : public testing::TestWithParam<Mutant> {};

TEST_P(DecodeMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  Pins pins = m.pins;
  pins.insert({{"pack_gqa", true}, {"groups", n(1)}, {"pingpong", false}});
  Request request = request_of(m.run, pins);
  request.edits = m.edits;
  expect_caught(run(request), m.by, 5);
}

/// Otherwise a mutant could be caught for another reason.
TEST_P(DecodeMutants, IsRightWithoutItsFault) {
  const Mutant& m = GetParam();
  Pins pins = m.pins;
  pins.insert({{"pack_gqa", true}, {"groups", n(1)}, {"pingpong", false}});
  expect_right(request_of(m.run, pins));
}

const Mutant kMutants[] = {
    // Heads of a group as rows.
    {"output_of_the_next_head",
     kPacked,
     {{kKernel, "(head0 + tile_rows.head(in_tile)) * o_head_stride",
       "(head0 + tile_rows.head(in_tile + 1)) * o_head_stride"}},
     CaughtBy::kComparison},
    {"lse_of_the_next_head",
     kPacked,
     {{kKernel,
       "const int i = lane_row + 8 * h, head = head0 + tile_rows.head(i), row = tile_rows.used(i) ? query_of(h) : "
       "q_len;\n{% else %}\n      const int row",
       "const int i = lane_row + 8 * h, head = head0 + tile_rows.head(i + 1), row = tile_rows.used(i) ? query_of(h) : "
       "q_len;\n{% else %}\n      const int row"}},
     CaughtBy::kComparison},
    {"head_and_query_exchanged",
     kPacked,
     {{kRows, "return i / group;", "return i % group;"},
      {kRows, "return i % group; }\n};", "return i / group; }\n};"}}},
    {"queries_of_another_group",
     kPacked,
     {{kKernel, "slab * kSlabColumns, head0, ", "slab * kSlabColumns, kv_head, "}},
     CaughtBy::kComparison},
    {"tile_of_a_query_more",
     kPacked,
     {{kKernel, "(gridDim.x - 1 - blockIdx.x) * kQueries;", "(gridDim.x - 1 - blockIdx.x) * (kQueries + 1);"}}},
    {"diagonal_by_row_of_the_tile",
     kPacked,
     {{kKernel, "kCausal ? query_of(h) + lead", "kCausal ? row0 + lane_row + 8 * h + lead"}},
     CaughtBy::kComparison},
    {"diagonal_tile_not_masked",
     kPacked,
     {{kKernel, "const int group_row = row0 + 64 * consumer / kGroup;",
       "const int group_row = row0 + 64 * (consumer + 1);"}},
     CaughtBy::kComparison,
     {{"BN", n(80)}}},
    {"all_rows_expected",
     kPacked,
     {{kKernel, "\"kQCopiedBytes\" if pack_gqa", "\"kQBytes\" if pack_gqa"}},
     CaughtBy::kFinding},
    {"empty_rows_not_cleared",
     kPacked,
     {{kKernel, "      store_shared_16(q_tile + slab * kQSlabBytes + at, uint4{});\n  async", "      ;\n  async"}},
     CaughtBy::kFinding},
    {"empty_rows_without_proxy_fence",
     kPacked,
     {{kKernel, "  async_proxy_fence();\n  named_barrier(1 + kGroups + consumer, 128);\n{% endif %}",
       "  named_barrier(1 + kGroups + consumer, 128);\n{% endif %}"}},
     CaughtBy::kFinding},
    {"empty_rows_stored",
     kPacked,
     {{kKernel, "    if (!tile_rows.used(in_tile)) break;  // rows in use come first\n", ""}}},
    {"tiles_that_only_the_first_head_sees",
     kMasked,
     {{kKernel, "\"kGroup, \" if pack_gqa", "\"1, \" if pack_gqa"}},
     CaughtBy::kComparison},
    {"score_of_the_first_head",
     kScored,
     {{kKernel, "head0 + tile_rows.head(lane_row + 8 * h)); };", "head0); };"}},
     CaughtBy::kComparison},
    // Split keys.
    {"one_tile_more_between",
     kSplit,
     {{kKernel, "const int stride = splits,", "const int stride = splits + 1,"}},
     CaughtBy::kComparison},
    {"last_tile_of_a_split_off_by_one",
     kSplit,
     {{kKernel, "(steps - 1 - split) % splits : -1;", "(steps - split) % splits : -1;"}}},
    {"split_begins_a_tile_early",
     kSplit,
     {{kKernel, "split < steps ? steps - 1 - (steps - 1 - split) % splits",
       "split < steps ? steps - 1 - (steps - split) % splits"}}},
    {"split_with_one_tile_left_out",
     kSplit,
     {{kKernel, "last = split < steps ?", "last = split + 1 < steps ?"}},
     CaughtBy::kComparison},
    {"empty_split_is_nan",
     kSplit,
     {{kKernel, "inverse[h] = empty ? 0.0f : rcp_approx(sum)", "inverse[h] = rcp_approx(sum)"}},
     CaughtBy::kComparison},
    {"part_of_another_split",
     kSplit,
     {{kKernel, "* splits + split;", "* splits + (split + 1) % splits;"},
      {kKernel, "partial_lse[part]", "partial_lse[part - (split + 1) % splits + split]"}},
     CaughtBy::kComparison},
    {"lse_in_base_e",
     kSplit,
     {{kKernel, "empty ? neg_inf() : {{ top }} + log2_approx(sum)",
       "empty ? neg_inf() : ({{ top }} + log2_approx(sum)) * kLn2"}},
     CaughtBy::kComparison},
    {"lse_without_the_sum",
     kSplit,
     {{kKernel, "empty ? neg_inf() : {{ top }} + log2_approx(sum)", "empty ? neg_inf() : {{ top }}"}},
     CaughtBy::kComparison},
    {"mask_of_a_tile_of_another_split",
     kMaskedSplit,
     {{kKernel, "const int key = (last - index * stride) * BN;", "const int key = (last - index) * BN;"}},
     CaughtBy::kComparison},
    {"part_of_the_next_head",
     kSplit,
     {{kKernel,
       "const int i = lane_row + 8 * h, head = head0 + tile_rows.head(i), row = tile_rows.used(i) ? query_of(h) : "
       "q_len;\n{% else %}\n    const int row",
       "const int i = lane_row + 8 * h, head = head0 + tile_rows.head(i + 1), row = tile_rows.used(i) ? query_of(h) : "
       "q_len;\n{% else %}\n    const int row"}},
     CaughtBy::kComparison},
    {"parts_merged_before_all_warps_wrote",
     kMerged,
     {{kMerge, "  {{ barrier }};\n  unsigned* const before", "  unsigned* const before"}},
     CaughtBy::kFinding},
    {"merge_barrier_of_too_few_threads",
     kMerged,
     {{kKernel, "set barrier = \"named_barrier(1 + 2 * kGroups, 128 * kGroups)\"",
       "set barrier = \"named_barrier(1 + 2 * kGroups, 64 * kGroups)\""}},
     CaughtBy::kEither},
    {"merge_by_all_warps_of_the_cta",
     kMerged,
     {{kKernel, "const int thread = threadIdx.x - 128, warp = thread / 32;",
       "const int thread = threadIdx.x, warp = thread / 32;"}}},
    // Pages.
    {"page_of_the_next_tile",
     kPages,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "min((j + 1) * BN / kPage + lane, last)"}},
     CaughtBy::kComparison},
    {"page_of_the_tile_before",
     kPages,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "min(max(0, j - 1) * BN / kPage + lane, last)"}},
     CaughtBy::kComparison},
    {"page_of_the_tile_s_first_keys",
     kPages,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "min(j * BN / kPage, last)"}},
     CaughtBy::kComparison},
    {"pages_in_order",
     kPages,
     {{kKernel, "pages.load(to, {{ t }}_map, barrier, j, page);",
       "pages.load(to, {{ t }}_map, barrier, j, j * kBoxes + lane);"}}},
    {"page_behind_the_last_key",
     kPages,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "(j * BN / kPage + lane)"}},
     CaughtBy::kFinding},
    {"last_page_one_too_far",
     kPages,
     {{kBoxes, "last((keys - 1) / kPage)", "last(keys / kPage + 1)"}},
     CaughtBy::kFinding},
    {"last_page_one_too_near",
     kPages,
     {{kBoxes, "last((keys - 1) / kPage)", "last((keys - 1) / kPage - 1)"}},
     CaughtBy::kComparison},
    {"table_of_the_first_sequence",
     kPages,
     {{kKernel, "block_table + static_cast<long long>(batch) * pages_per_sequence", "block_table"}}},
    {"table_read_past_its_end",
     kWhole,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "(j * BN / kPage + lane + 1)"}},
     CaughtBy::kFinding,
     {{"BN", n(64)}}},
    {"box_in_the_place_of_the_next",
     kPages,
     {{kBoxes, "lane * (kBoxKeys * Slab::kPitch)", "(lane ^ 1) * (kBoxKeys * Slab::kPitch)"}},
     CaughtBy::kComparison},
    {"one_box_missing",
     kPages,
     {{kBoxes, "    if (lane < kBoxes)\n#pragma", "    if (lane < kBoxes - 1)\n#pragma"}},
     CaughtBy::kFinding},
    {"keys_of_the_page_s_start",
     kParts,
     {{kBoxes, "j * BN % kPage, head", "0, head"}},
     CaughtBy::kComparison,
     {{"BN", n(64)}}},
    {"head_of_a_page_ignored", kParts, {{kBoxes, "j * BN % kPage, head", "j * BN % kPage, 0"}}, CaughtBy::kComparison},
    {"stage_not_waited_for",
     kPages,
     {{kKernel, "{{ ring }}_place.parity ^ 1);", "{{ ring }}_place.parity);"}},
     CaughtBy::kFinding},
    {"boxes_ahead_of_the_wait",
     kPages,
     {{kKernel, "        __syncwarp();\n        pages.load(", "        pages.load("},
      {kKernel, "        if (lane == 0) {\n          barrier_wait({{ ring }}_empty",
       "        if (lane == 31) {\n          barrier_wait({{ ring }}_empty"}},
     CaughtBy::kFinding},
    {"tail_of_v_not_cleared",
     kPages,
     {{kKernel, "{% set clears_tail = has_tail and not fp8 %}", "{% set clears_tail = false %}"}},
     CaughtBy::kComparison},
    // Pages in e4m3.
    {"fp8_page_of_the_next_tile",
     kPagesFp8,
     {{kBoxes, "min(j * BN / kPage + lane, last)", "min((j + 1) * BN / kPage + lane, last)"}},
     CaughtBy::kComparison},
    {"fp8_pages_in_order",
     kPagesFp8,
     {{kKernel, "pages.load(to, {{ t }}_map, barrier, j, page);",
       "pages.load(to, {{ t }}_map, barrier, j, j * kBoxes + lane);"}}},
    {"fp8_keys_of_the_page_s_start",
     kPartsFp8,
     {{kBoxes, "j * BN % kPage, head", "0, head"}},
     CaughtBy::kComparison,
     {{"BN", n(64)}}},
    {"fp8_columns_of_16_bits", kWideFp8, {{kBoxes, "slab * kSlabColumns,", "slab * Slab::kColumns,"}}},
    {"fp8_last_page_not_cleared",
     kEqualFp8,
     {{kKernel, "{% set has_tail = varlen or ragged or paged %}", "{% set has_tail = varlen or ragged %}"}},
     CaughtBy::kComparison},
    {"fp8_stage_not_waited_for",
     kPagesFp8,
     {{kKernel, "{{ ring }}_place.parity ^ 1);", "{{ ring }}_place.parity);"}},
     CaughtBy::kFinding},
    {"fp8_turned_without_proxy_fence",
     kPagesFp8,
     {{kKernel, "        async_proxy_fence();\n        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full",
       "        __syncwarp();\n        if (lane == 0) barrier_arrive(v_full"}},
     CaughtBy::kFinding},
    {"fp8_scale_of_the_first_head",
     kPagesFp8,
     {{kKernel, "(\"kv_head\" if pack_gqa", "(\"0\" if pack_gqa"}},
     CaughtBy::kComparison},
    {"fp8_scale_of_k_missing",
     kPartsFp8,
     {{kKernel, "unit_scale * q_scale[kv_scale] * k_scale[kv_scale]", "unit_scale * q_scale[kv_scale]"}},
     CaughtBy::kComparison},
    // Two CTAs share the registers of an SM.
    {"registers_of_a_cta_alone",
     kPacked,
     {{kKernel, "take_registers<{{ consumer_registers }}>", "take_registers<256>"}},
     CaughtBy::kFinding,
     {{"ctas_per_sm", n(2)}}},
    // Behind a prologue.
    {"rotated_queries_of_another_group",
     kPrologue,
     {{kKernel, "slab * kSlabColumns, head0, ", "slab * kSlabColumns, head0 + kGroup, "}}},
};

INSTANTIATE_TEST_SUITE_P(AttentionWarpgroup, DecodeMutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::attention_warpgroup_decode_test
