// Variants of several kernels whose kernels behind the first are dependent launches (docs/kernels/dependent-launch.md):
// right in the simulator, which reports accesses that griddepcontrol.wait does not order.
#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/attention_case.h"
#include "tests/kernels/gemm_support.h"
#include "tests/kernels/rows_case.h"

namespace roofgen::test::dependent_launch_test {
namespace {

struct Case {
  std::string name;
  std::function<Result<Problem>()> problem;
  std::string variant;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Result<Problem> complete(const std::string& op, Dims dims, Flags flags = {}, Texts texts = {},
                         std::map<std::string, DType> dtypes = {}) {
  Problem problem{op, std::move(dims), DType::kBf16, std::move(flags), {}};
  problem.texts = std::move(texts);
  problem.dtypes = std::move(dtypes);
  ROOFGEN_TRY(const Op* found, find_op(op));
  return found->complete(problem);
}

const Dims kSizes{{"L", 130}, {"kv_len", 141}, {"d", 64}, {"batch", 1}, {"heads", 2}};
const Case kAttention{"attention_unfused", [] { return complete("attention", kSizes, kCausalLse); }, "unfused"},
    kSplitKeys{"attention_split", [] { return complete("attention", kSizes, kLse); }, "split2"},
    kNorm{"rmsnorm_unfused",
          [] {
            return complete("rmsnorm", {{"rows", 9}, {"cols", 1001}}, kResidual, kFp8);
          },
          "unfused"},
    kSplitRow{"softmax_split",
              [] {
                return complete("softmax", {{"rows", 3}, {"cols", 20000}});
              },
              "split"},
    kEpilogue{"gemm_unfused",
              [] {
                return gemm({150, 136, 72, DType::kBf16, "silu(acc) + bias[n]"});
              },
              "unfused"},
    kExperts{"grouped_gemm_unfused",
             [] {
               return complete("grouped_gemm", {{"N", 72}, {"K", 72}, {"tokens", 40}, {"topk", 2}, {"experts", 3}},
                               {{"gather", true}}, {{"epilogue", "acc"}, {"scatter", "weighted"}});
             },
             "unfused"};

const Case kCases[] = {
    kAttention,
    {"attention_mask",
     [] {
       return complete("attention", kSizes, kLse, {{"mask", "q - k < 30"}});
     },
     "unfused"},
    {"attention_rotary",
     [] {
       return complete("attention", kSizes, {}, {{"rotary", "half"}});
     },
     "unfused"},
    {"attention_fp8_cache",
     [] {
       return complete("attention", kSizes, {}, {}, {{"kv", DType::kFp8}});
     },
     "unfused"},
    {"attention_prologue",
     [] {
       return complete("attention", kSizes, {{"append", true}}, {{"rotary", "half"}});
     },
     "prologue_fused"},
    kSplitKeys,
    {"attention_warpgroup_split", [] { return complete("attention", kSizes); }, "warpgroup_split2"},
    kNorm,
    kSplitRow,
    kEpilogue,
    {"gemm_split_k",
     [] {
       return gemm({70, 48, 2100, DType::kBf16, "silu(acc * 0.1 + bias[n])"});
     },
     "split_k2"},
    {"gemm_warpgroup_split_k",
     [] {
       return gemm({70, 48, 2104, DType::kBf16, "acc * 0.1 + bias[n]"});
     },
     "warpgroup_split_k2"},
    kExperts,
    {"grouped_gemm_warpgroup", kExperts.problem, "unfused_warpgroup"},
};

Request request_of(const Case& c) {
  const Result<Problem> problem = c.problem();
  EXPECT_TRUE(problem) << to_string(problem.error());
  Request request;
  request.problem = *problem;
  request.variant = c.variant;
  request.dependent = true;
  return request;
}

class DependentLaunch : public testing::TestWithParam<Case> {};

TEST_P(DependentLaunch, IsRight) { expect_right(request_of(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Kernels, DependentLaunch, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::dependent_launch_test
