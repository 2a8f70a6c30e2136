// Every attention template at small and odd sizes, simulated with the whole grid and compared with the reference.
#include <gtest/gtest.h>

#include "tests/kernels/attention_case.h"

namespace roofgen::test::attention_kernels_test {
namespace {

class AttentionSizes : public testing::TestWithParam<std::tuple<std::string, AttentionCase>> {};

TEST_P(AttentionSizes, AreRight) {
  const auto& [variant, c] = GetParam();
  expect_right({c, variant});
}

INSTANTIATE_TEST_SUITE_P(Variants, AttentionSizes,
                         testing::Combine(testing::Values("fused", "unfused", "warpgroup"),
                                          testing::ValuesIn(attention_cases("sizes"))),
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
