// The rows kernel with odd row lengths and non-default schedules; slow because of many compilations.
#include <gtest/gtest.h>

#include "tests/kernels/rows_case.h"

namespace roofgen::test::rows_sizes_slow_test {
namespace {

class RowsSizes : public testing::TestWithParam<RowsCase> {};

TEST_P(RowsSizes, AreRight) { expect_right(GetParam()); }

/// Every op and format with odd row lengths, even ones, and ones shorter than a group.
std::vector<RowsCase> sizes() {
  std::vector<RowsCase> out;
  const DType dtypes[] = {DType::kBf16, DType::kFp16, DType::kFp32};
  int which = 0;
  for (const int64_t cols : {1, 5, 17, 63, 64, 128, 1000, 4097})
    for (const int64_t rows : {1, 3, 7}) {
      const DType dtype = dtypes[which++ % 3];
      out.push_back({"rmsnorm", rows, cols, dtype, kResidual});
      out.push_back({"layernorm", rows, cols, dtypes[which % 3], rows == 3 ? kBias : kBoth});
      out.push_back({"softmax", rows, cols, dtypes[(which + 1) % 3]});
    }
  return out;
}
INSTANTIATE_TEST_SUITE_P(SlowSizes, RowsSizes, testing::ValuesIn(sizes()),
                         [](const auto& test) { return label(test.param); });

/// Non-default schedules.
std::vector<RowsCase> schedules() {
  std::vector<RowsCase> out;
  const auto at = [&](Pins pins) {
    const auto residency = pins.find("residency");
    const bool packed = residency != pins.end() && residency->second == text("packed");
    for (const int64_t cols : {4096, 4099}) {
      out.push_back({"softmax", 3, cols, DType::kBf16, {}, {}, {}, "fused", pins});
      if (!packed) out.push_back({"layernorm", 3, cols, DType::kFp16, kBoth, {}, {}, "fused", pins});
    }
  };
  at({{"residency", text("shared")}, {"row_threads", n(128)}, {"batch", n(2)}});
  at({{"residency", text("shared")}, {"row_threads", n(256)}, {"threads", n(512)}, {"batch", n(1)}});
  at({{"residency", text("packed")}, {"row_threads", n(128)}, {"batch", n(2)}});
  at({{"residency", text("packed")}, {"row_threads", n(32)}, {"rows_each", n(1)}, {"batch", n(4)}});
  at({{"residency", text("memory")}, {"row_threads", n(64)}, {"threads", n(128)}, {"batch", n(4)}});
  at({{"residency", text("memory")},
      {"row_threads", n(256)},
      {"threads", n(256)},
      {"rows_each", n(2)},
      {"batch", n(1)}});
  // Rows that need registers and shared memory together.
  for (const Pins& pins : {Pins{}, Pins{{"row_threads", n(512)}, {"threads", n(512)}, {"batch", n(2)}},
                           Pins{{"threads", n(1024)}, {"row_threads", n(1024)}, {"batch", n(2)}, {"vec", n(4)}}})
    for (const int64_t cols : {128256, 131071}) {
      if (cols == 128256 && pins.count("vec")) continue;  // rows of whole 16-byte groups only take full vectors
      Pins packed = pins;
      packed["residency"] = text("packed");
      out.push_back({"softmax", 2, cols, cols == 128256 ? DType::kFp16 : DType::kBf16, {}, {}, {}, "fused", packed});
    }
  out.push_back({"layernorm", 2, 125001, DType::kBf16, kBias, {}, {}, "fused", {{"residency", text("packed")}}});
  out.push_back({"softmax", 2, 131072, DType::kBf16, {}, {}, {}, "fused", {}, InputPattern::kSpecial});
  at({{"row_threads", n(256)}, {"rows_each", n(2)}});
  at({{"row_threads", n(512)}, {"threads", n(1024)}});
  for (const int64_t vec : {1, 2, 4, 8})
    out.push_back({"rmsnorm", 5, 1001, DType::kBf16, kResidual, {}, {}, "fused", {{"vec", n(vec)}}});
  for (const int64_t row_threads : {8, 16, 32, 64})
    out.push_back(
        {"layernorm",
         21,
         200,
         DType::kBf16,
         kBias,
         {},
         {},
         "fused",
         {{"row_threads", n(row_threads == 64 ? 32 : row_threads)}, {"rows_each", n(row_threads == 64 ? 4 : 2)}}});
  out.push_back({"softmax",
                 3,
                 4099,
                 DType::kFp32,
                 {},
                 {},
                 {},
                 "fused",
                 {{"residency", text("memory")}, {"vec", n(2)}},
                 InputPattern::kSpecial});
  out.push_back({"map",
                 3,
                 2000,
                 DType::kBf16,
                 {},
                 {{"expr", "x * weight[n]"}},
                 {},
                 "fused",
                 {{"batch", n(1)}, {"row_threads", n(8)}}});
  return out;
}
INSTANTIATE_TEST_SUITE_P(SlowSchedules, RowsSizes, testing::ValuesIn(schedules()),
                         [](const auto& test) { return label(test.param); });

}  // namespace
}  // namespace roofgen::test::rows_sizes_slow_test
