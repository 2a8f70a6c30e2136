// The rows kernel at small and odd sizes, in every format and with every schedule parameter, simulated whole and
// compared with the reference.
#include <gtest/gtest.h>

#include "tests/kernels/rows_case.h"

namespace roofgen::test::rows_kernels_test {
namespace {

class Rows : public testing::TestWithParam<RowsCase> {};

TEST_P(Rows, AreRight) { expect_right(GetParam()); }

const RowsCase kChoices[] = {
    {"rmsnorm", 70, 128},
    {"rmsnorm", 5, 4096},
    {"rmsnorm", 9, 513, DType::kBf16, kResidual, kFp8},
    {"rmsnorm", 9, 513, DType::kFp16, {}, kInt8},
    {"rmsnorm", 4, 512, DType::kBf16, {}, {{"quant", "fp8"}, {"quant_scale", "tensor"}}},
    {"rmsnorm", 4, 640, DType::kFp32, {}, {}, {{"out", DType::kBf16}}},
    {"layernorm", 3, 1024, DType::kBf16, kBoth, kInt8},
    {"layernorm", 3, 1024, DType::kBf16, {}, {}, {{"out", DType::kFp32}}},
    {"rmsnorm", 5, 1000, DType::kBf16, kResidual, {}, {}, "unfused"},
    {"rmsnorm", 5, 1001, DType::kFp16, kResidual, kFp8, {}, "unfused"},
    {"rmsnorm", 3, 768, DType::kBf16, {}, kInt8, {}, "unfused"},
    {"layernorm", 3, 768, DType::kFp32, kBoth, {}, {}, "unfused"},
    {"softmax", 2, 20000, DType::kBf16, {}, {}, {}, "split"},
    {"softmax", 1, 8193, DType::kFp32, {}, {}, {}, "split"},
    {"map", 3, 1000, DType::kBf16, {}, {{"expr", "gelu(x + bias[n]) * weight[n] + residual[m,n]"}}},
    {"map", 7, 33, DType::kFp16, {}, {{"expr", "silu(x) + row_bias[m]"}}, {{"out", DType::kFp32}}},
    {"map", 5, 9001, DType::kFp32, {}, {{"expr", "max(x, 0) * scale"}}, {{"out", DType::kInt8}}},
    {"map", 2, 64, DType::kFp32, {}, {{"expr", "x / (1 + exp(-x))"}}, {{"out", DType::kFp8}}},
    // A row that contains only -infinity has no maximum to subtract, wherever the row is kept.
    {"map", 2, 2048, DType::kFp32, {}, {{"expr", "sum(exp((x - 3e38 - 3e38) - max(x - 3e38 - 3e38)))"}}},
    {"map",
     2,
     2048,
     DType::kFp32,
     {},
     {{"expr", "sum(exp((x - 3e38 - 3e38) - max(x - 3e38 - 3e38)))"}},
     {},
     "fused",
     {{"residency", text("memory")}}},
    {"rmsnorm", 6, 4096, DType::kBf16, kResidual, {}, {}, "fused", {}, InputPattern::kSpecial},
    {"layernorm", 40, 300, DType::kFp32, kBoth, {}, {}, "fused", {}, InputPattern::kSpecial},
    {"softmax", 6, 4097, DType::kFp32, {}, {}, {}, "fused", {}, InputPattern::kSpecial},
    {"softmax", 60, 100, DType::kFp16, {}, {}, {}, "fused", {}, InputPattern::kIntegers},
    {"softmax", 4, 20000, DType::kBf16, {}, {}, {}, "split", {}, InputPattern::kSpecial},
    {"rmsnorm", 40, 300, DType::kBf16, {}, kFp8, {}, "fused", {}, InputPattern::kSpecial},
};
INSTANTIATE_TEST_SUITE_P(Choices, Rows, testing::ValuesIn(kChoices),
                         [](const auto& test) { return label(test.param); });

TEST(RowsBits, AreTheSameTwice) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto request = request_of({"layernorm", 3, 4097, DType::kBf16, kBoth});
  ASSERT_TRUE(request) << to_string(request.error());
  request->keep_bytes = true;
  auto first = run(*request), second = run(*request);
  ASSERT_TRUE(first && second);
  ASSERT_FALSE(first->front().bytes.empty());
  EXPECT_EQ(first->front().bytes, second->front().bytes);
}

}  // namespace
}  // namespace roofgen::test::rows_kernels_test
