// Every attention template at small and odd sizes, simulated with the whole grid and compared with the reference.
#include <gtest/gtest.h>

#include "tests/kernels/run_kernel.h"

namespace roofgen::test::attention_kernels_test {
namespace {

using Dims = std::map<std::string, int64_t>;
using Flags = std::map<std::string, bool>;

void expect_right(const Request& request) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
  for (const StageRun& r : *runs) {
    EXPECT_EQ(r.binary.spill_bytes, 0) << to_string(r.schedule);
    EXPECT_GT(r.comparison.rows, 0u);
    EXPECT_GT(r.counts.warp_instructions, 0u);
    testing::Test::RecordProperty(r.stage + " error/tolerance", std::to_string(r.comparison.worst));
  }
}

struct Case {
  std::string name;
  Dims dims;
  Flags flags = {};
  DType dtype = DType::kBf16;
  InputPattern pattern = InputPattern::kNormal;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class AttentionSizes : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(AttentionSizes, AreRight) {
  const auto& [variant, c] = GetParam();
  Request request;
  request.problem = attention(c.dims, c.flags, c.dtype);
  request.variant = variant;
  request.pattern = c.pattern;
  expect_right(request);
}

const Flags kCausal{{"causal", true}}, kLse{{"lse", true}}, kCausalLse{{"causal", true}, {"lse", true}};

const Case kCases[] = {
    {"even", {{"L", 256}, {"d", 64}, {"batch", 1}, {"heads", 2}}},
    {"one_row_one_key", {{"L", 1}, {"d", 64}, {"batch", 2}, {"heads", 1}}, kLse},
    {"odd_lengths", {{"L", 97}, {"kv_len", 203}, {"d", 64}, {"batch", 2}, {"heads", 2}}, kLse},
    {"causal", {{"L", 200}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausal},
    {"causal_even", {{"L", 256}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausalLse},
    {"causal_more_keys", {{"L", 75}, {"kv_len", 277}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausalLse},
    {"causal_fewer_keys", {{"L", 301}, {"kv_len", 99}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausalLse},
    {"shared_keys", {{"L", 65}, {"d", 64}, {"batch", 2}, {"heads", 6}, {"kv_heads", 2}}},
    {"fp16", {{"L", 129}, {"kv_len", 150}, {"d", 64}, {"batch", 1}, {"heads", 2}}, kLse, DType::kFp16},
    {"fp16_causal_wide", {{"L", 130}, {"d", 128}, {"batch", 1}, {"heads", 1}}, kCausalLse, DType::kFp16},
    {"d32", {{"L", 131}, {"d", 32}, {"batch", 1}, {"heads", 2}}, kCausalLse},
    {"d48", {{"L", 130}, {"d", 48}, {"batch", 1}, {"heads", 2}}, kLse},
    {"d80", {{"L", 100}, {"d", 80}, {"batch", 1}, {"heads", 1}}, kCausal},
    {"d96", {{"L", 127}, {"d", 96}, {"batch", 1}, {"heads", 2}}},
    {"d112", {{"L", 90}, {"d", 112}, {"batch", 1}, {"heads", 1}}, kCausal},
    {"d128", {{"L", 161}, {"kv_len", 190}, {"d", 128}, {"batch", 1}, {"heads", 1}}, kLse},
    {"d176", {{"L", 70}, {"d", 176}, {"batch", 1}, {"heads", 1}}, kCausalLse},
    {"d240", {{"L", 66}, {"d", 240}, {"batch", 1}, {"heads", 1}}},
    {"d256", {{"L", 130}, {"d", 256}, {"batch", 1}, {"heads", 1}}, kCausal},
    {"zero_query",
     {{"L", 100}, {"kv_len", 150}, {"d", 64}, {"batch", 1}, {"heads", 1}},
     kCausalLse,
     DType::kBf16,
     InputPattern::kZeroQuery},
    {"zero_query_fp16",
     {{"L", 90}, {"kv_len", 333}, {"d", 32}, {"batch", 1}, {"heads", 1}},
     kLse,
     DType::kFp16,
     InputPattern::kZeroQuery},
    {"one_hot",
     {{"L", 150}, {"kv_len", 155}, {"d", 64}, {"batch", 1}, {"heads", 2}, {"kv_heads", 1}},
     kCausalLse,
     DType::kBf16,
     InputPattern::kOneHot},
    {"one_hot_fp16",
     {{"L", 70}, {"kv_len", 555}, {"d", 80}, {"batch", 1}, {"heads", 1}},
     kLse,
     DType::kFp16,
     InputPattern::kOneHot},
    {"growing",
     {{"L", 150}, {"kv_len", 700}, {"d", 64}, {"batch", 1}, {"heads", 2}, {"kv_heads", 1}},
     kCausalLse,
     DType::kBf16,
     InputPattern::kGrowing},
    {"growing_fp16",
     {{"L", 70}, {"kv_len", 1055}, {"d", 128}, {"batch", 1}, {"heads", 1}},
     kLse,
     DType::kFp16,
     InputPattern::kGrowing},
    {"growing_from_the_first_key",
     {{"L", 520}, {"d", 80}, {"batch", 1}, {"heads", 1}},
     kCausalLse,
     DType::kBf16,
     InputPattern::kGrowing},
};

INSTANTIATE_TEST_SUITE_P(Variants, AttentionSizes,
                         testing::Combine(testing::Values("fused", "unfused", "warpgroup"), testing::ValuesIn(kCases)),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

/// Non-default schedules with a causal mask, at a length that no tile divides.
class AttentionSchedules : public testing::TestWithParam<std::tuple<std::string, std::string, Pins>> {};

TEST_P(AttentionSchedules, AreRight) {
  const auto& [variant, stage, pins] = GetParam();
  Request request;
  request.problem = attention({{"L", 300}, {"kv_len", 333}, {"d", 64}, {"batch", 1}, {"heads", 1}}, kCausalLse);
  request.variant = variant;
  request.pins[stage] = pins;
  expect_right(request);
}

ParamValue n(int64_t x) { return x; }
ParamValue text(const char* s) { return std::string(s); }

INSTANTIATE_TEST_SUITE_P(
    Points, AttentionSchedules,
    testing::Values(
        std::tuple{"fused", "attention", Pins{{"stages", n(1)}, {"q_in", text("shared")}}},
        std::tuple{"fused", "attention", Pins{{"stages", n(3)}, {"BN", n(32)}, {"rescale", text("always")}}},
        std::tuple{"fused", "attention", Pins{{"stages", n(4)}, {"BN", n(48)}, {"swizzle", false}}},
        std::tuple{"fused", "attention",
                   Pins{{"BM", n(64)}, {"BN", n(128)}, {"stages", n(1)}, {"rescale", text("always")}}},
        std::tuple{"fused", "attention", Pins{{"BM", n(192)}, {"BN", n(32)}, {"q_in", text("shared")}}},
        std::tuple{"fused", "attention", Pins{{"BM", n(256)}, {"warps", n(8)}}},
        std::tuple{"fused", "attention",
                   Pins{{"warps", n(8)}, {"ctas_per_sm", n(2)}, {"q_in", text("shared")}, {"BN", n(32)}}},
        std::tuple{"warpgroup", "attention", Pins{{"groups", n(1)}, {"pingpong", false}, {"BN", n(80)}}},
        std::tuple{"warpgroup", "attention", Pins{{"groups", n(1)}, {"pingpong", false}, {"overlap", false}}},
        std::tuple{"warpgroup", "attention", Pins{{"groups", n(2)}, {"k_stages", n(1)}, {"v_stages", n(1)}}},
        std::tuple{"warpgroup", "attention", Pins{{"k_stages", n(1)}, {"v_stages", n(2)}, {"BN", n(64)}}},
        std::tuple{"warpgroup", "attention",
                   Pins{{"k_stages", n(3)}, {"v_stages", n(2)}, {"BN", n(112)}, {"pingpong", false}}},
        std::tuple{"warpgroup", "attention",
                   Pins{{"groups", n(2)}, {"BN", n(176)}, {"overlap", false}, {"rescale", text("lazy")}}},
        std::tuple{"warpgroup", "attention", Pins{{"rescale", text("lazy")}, {"fma_exps", n(3)}, {"BN", n(64)}}},
        std::tuple{"fused", "attention", Pins{{"fma_exps", n(2)}}},
        std::tuple{"unfused", "scores", Pins{{"strip", n(1)}, {"stages", n(1)}, {"BN", n(64)}}},
        std::tuple{"unfused", "scores",
                   Pins{{"strip", n(4)}, {"stages", n(3)}, {"BN", n(64)}, {"warps_n", n(1)}, {"swizzle", false}}},
        std::tuple{"unfused", "scores",
                   Pins{{"BM", n(64)}, {"BN", n(192)}, {"strip", n(2)}, {"stages", n(2)}, {"warps", n(4)}}},
        std::tuple{"unfused", "softmax", Pins{{"row_in", text("memory")}}},
        std::tuple{"unfused", "softmax", Pins{{"row_threads", n(64)}, {"threads", n(256)}}},
        std::tuple{"unfused", "softmax", Pins{{"row_threads", n(64)}, {"row_in", text("memory")}}},
        std::tuple{"unfused", "pv", Pins{{"BM", n(64)}, {"BK", n(32)}, {"stages", n(4)}}},
        std::tuple{"unfused", "pv", Pins{{"BK", n(128)}, {"stages", n(2)}, {"warps", n(8)}, {"warps_n", n(2)}}},
        std::tuple{"unfused", "pv", Pins{{"BM", n(256)}, {"warps", n(8)}, {"swizzle", false}}}));

/// CTAs of several heads alternate.
class AttentionSections : public testing::TestWithParam<std::tuple<Flags, Pins>> {};

TEST_P(AttentionSections, AreRight) {
  const auto& [flags, pins] = GetParam();
  Request request;
  request.problem =
      attention({{"L", 390}, {"kv_len", 421}, {"d", 64}, {"batch", 2}, {"heads", 4}, {"kv_heads", 2}}, flags);
  request.variant = "warpgroup";
  request.pins["attention"] = pins;
  expect_right(request);
}

INSTANTIATE_TEST_SUITE_P(Points, AttentionSections,
                         testing::Values(std::tuple{kCausalLse, Pins{{"section", n(2)}}},
                                         std::tuple{kLse, Pins{{"section", n(4)}, {"groups", n(2)}}}));

}  // namespace
}  // namespace roofgen::test::attention_kernels_test
