// Attention with score expressions, masks, a softcap and sequences of different lengths: whole grids at small and odd
// sizes in the simulator, compared with the reference. Exact counts show the work saved by skipped tiles.
#include <gtest/gtest.h>

#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_modifiers_test {
namespace {

using Case = AttentionCase;

class AttentionModifiers : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(AttentionModifiers, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [variant, c] = GetParam();
  Request request;
  request.problem = problem_of(c);
  request.variant = variant;
  request.pattern = c.pattern;
  expect_right(request);
}

// A polynomial of fma_exps would make numbers of these, and of an infinite maximum's exponential; keys 2 and 41 are at
// places of its eight.
void expect_scores_to_stay(const std::vector<const char*>& scores, const std::vector<const char*>& rescales) {
  for (const char* score : scores)
    for (const char* rescale : rescales)
      for (const char* variant : {"fused", "warpgroup"}) {
        SCOPED_TRACE(std::string(score) + ", " + rescale);
        expect_right(
            {{"", {{"L", 64}, {"kv_len", 130}, {"d", 32}, {"batch", 1}, {"heads", 1}}, kCausalLse, {{"score", score}}},
             variant,
             {{"attention", {{"fma_exps", int64_t{2}}, {"rescale", std::string(rescale)}}}}});
      }
}

TEST(AttentionScores, ScoresThatAreNoNumbersStayOnes) {
  expect_scores_to_stay({"s if k != 41 else log(-1.0)"}, {"lazy"});
}

TEST(SlowAttentionScores, ScoresThatAreNoNumbersStayOnes) {
  expect_scores_to_stay({"s if k != 2 else log(-1.0)", "s if k != 41 else -log(0.0)"}, {"lazy", "always"});
  expect_scores_to_stay({"s if k != 41 else log(-1.0)"}, {"always"});
}

// Rows filled with one large number are means of V. In fp16 the rounding of 1e9 log2(e) alone is 2^16; 3.4e38 log2(e)
// is infinite.
void expect_filled_rows(const char* variant, DType dtype, const char* fill, int64_t keys = 130, bool lse = true) {
  SCOPED_TRACE(std::string(fill) + ", " + to_string(dtype));
  const Dims dims{{"L", 33}, {"kv_len", keys}, {"d", 64}, {"batch", 1}, {"heads", 1}};
  const Texts texts{{"score", std::string("s if q % 3 != 0 else ") + fill}};
  expect_right({{"", dims, {{"lse", lse}}, texts, {}, 0, dtype}, variant});
}

TEST(AttentionScores, FilledRowsAreMeans) { expect_filled_rows("fused", DType::kFp16, "-1e9"); }

TEST(SlowAttentionScores, FilledRowsAreMeans) {
  for (const char* fill : {"-1e9", "-1e12", "-3.4e38", "3e38"}) {
    for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp8}) expect_filled_rows("warpgroup", dtype, fill);
    expect_filled_rows("fused", DType::kFp16, fill);
    const bool in_log2 = std::abs(std::stod(fill)) < 2.3e38;  // splits keep maxima times log2 e
    for (const char* variant : {"merged3", "warpgroup_merged3", "warpgroup_even3"})
      expect_filled_rows(variant, DType::kFp16, fill, 700, in_log2);
    if (!in_log2) continue;
    for (const char* variant : {"split3", "warpgroup_split3"}) expect_filled_rows(variant, DType::kFp16, fill, 700);
    expect_filled_rows("unfused", DType::kBf16, fill);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, AttentionModifiers,
                         testing::Combine(testing::Values("fused", "unfused", "warpgroup"),
                                          testing::ValuesIn(attention_cases("modifiers"))),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

/// Non-default schedules with all modifiers combined.
class ModifiedSchedules : public testing::TestWithParam<std::tuple<std::string, std::string, Pins>> {};

TEST_P(ModifiedSchedules, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto& [variant, stage, pins] = GetParam();
  Request request;
  request.problem = problem_of({"",
                                {{"L", 300}, {"kv_len", 333}, {"d", 64}, {"batch", 1}, {"heads", 1}},
                                kCausalLse,
                                {{"score", "s + 0.05 * slope[h] * (k - q)"}, {"mask", "k < 4 or q - k < 70"}},
                                {kSlope}});
  request.variant = variant;
  request.pins[stage] = pins;
  auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

ParamValue n(int64_t x) { return x; }
ParamValue text(const char* s) { return std::string(s); }

INSTANTIATE_TEST_SUITE_P(
    Points, ModifiedSchedules,
    testing::Values(
        std::tuple{"fused", "attention", Pins{{"stages", n(1)}, {"q_in", text("shared")}}},
        std::tuple{"fused", "attention", Pins{{"stages", n(3)}, {"BN", n(32)}, {"rescale", text("always")}}},
        std::tuple{"fused", "attention", Pins{{"stages", n(4)}, {"BN", n(48)}, {"swizzle", false}}},
        std::tuple{"fused", "attention", Pins{{"BM", n(256)}, {"warps", n(8)}}},
        std::tuple{"warpgroup", "attention", Pins{{"groups", n(1)}, {"pingpong", false}, {"BN", n(80)}}},
        std::tuple{"warpgroup", "attention", Pins{{"overlap", false}, {"BN", n(64)}, {"rescale", text("lazy")}}},
        std::tuple{"unfused", "scores", Pins{{"strip", n(1)}, {"stages", n(1)}, {"BN", n(64)}}},
        std::tuple{"unfused", "scores",
                   Pins{{"strip", n(4)}, {"stages", n(3)}, {"BN", n(64)}, {"warps_n", n(1)}, {"swizzle", false}}},
        std::tuple{"unfused", "softmax", Pins{{"row_in", text("memory")}}},
        std::tuple{"unfused", "softmax", Pins{{"row_threads", n(64)}, {"threads", n(256)}}},
        std::tuple{"unfused", "pv", Pins{{"BM", n(64)}, {"BK", n(32)}, {"stages", n(4)}}},
        std::tuple{"unfused", "pv", Pins{{"BK", n(128)}, {"stages", n(2)}, {"warps", n(8)}, {"warps_n", n(2)}}}));

// A sliding window processes exactly the tiles that contain a visible pair.
void expect_exact_tiles(const std::vector<int64_t>& windows) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  constexpr int64_t L = 1024, d = 64, BM = 128, BN = 64;
  for (const int64_t window : windows) {
    Request request;
    request.problem = problem_of({"",
                                  {{"L", L}, {"d", d}, {"batch", 1}, {"heads", 1}},
                                  {},
                                  {{"mask", "q >= k and q - k < " + std::to_string(window)}}});
    request.pins["attention"] = {{"BM", n(BM)}, {"BN", n(BN)}};
    auto runs = run(request);
    ASSERT_TRUE(runs) << to_string(runs.error());
    ASSERT_EQ(what_is_wrong(*runs), "");
    int64_t tiles = 0;
    for (int64_t q0 = 0; q0 < L; q0 += BM)
      for (int64_t k0 = 0; k0 < L; k0 += BN) {
        bool visible = false;
        for (int64_t q = q0; q < q0 + BM && !visible; ++q)
          visible = std::max(k0, q - window + 1) <= std::min(k0 + BN - 1, q);
        tiles += visible;
      }
    EXPECT_EQ((*runs)[0].counts.mma_flops, static_cast<uint64_t>(tiles * 4 * BM * BN * d)) << "window " << window;
  }
}

TEST(SkippedTiles, AreExactlyTheTilesWithoutAVisiblePair) { expect_exact_tiles({100}); }
TEST(SlowSkippedTiles, AreExactlyTheTilesWithoutAVisiblePair) { expect_exact_tiles({1, 64, 1024}); }

// A causal mask written as an expression costs the same as --causal: full tiles are not masked.
TEST(SkippedTiles, LeaveTheFastPathToWholeTiles) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Dims dims{{"L", 1024}, {"d", 64}, {"batch", 1}, {"heads", 1}};
  Request written, built_in;
  written.problem = problem_of({"", dims, {}, {{"mask", "q >= k"}}});
  built_in.problem = problem_of({"", dims, kCausal});
  for (Request* r : {&written, &built_in}) r->pins["attention"] = {{"BM", n(128)}};
  auto a = run(written), b = run(built_in);
  ASSERT_TRUE(a) << to_string(a.error());
  ASSERT_TRUE(b) << to_string(b.error());
  ASSERT_EQ(what_is_wrong(*a), "");
  EXPECT_EQ((*a)[0].counts.mma, (*b)[0].counts.mma);
  const double ratio =
      static_cast<double>((*a)[0].counts.warp_instructions) / static_cast<double>((*b)[0].counts.warp_instructions);
  RecordProperty("instructions, to those of --causal", std::to_string(ratio));
  EXPECT_LT(ratio, 1.03);
}

}  // namespace
}  // namespace roofgen::test::attention_modifiers_test
