// Numbers as stored in tensors, and the contents of inputs.
#include "generator/ops/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace roofgen::elements_test {
namespace {

constexpr DType kAll[] = {DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32,
                          DType::kFp8,  DType::kInt8, DType::kInt32};
constexpr double kInf = std::numeric_limits<double>::infinity();

double element_of(uint32_t bits, DType dtype) {
  std::array<std::byte, 4> raw;
  std::memcpy(raw.data(), &bits, 4);
  return load_element(raw.data(), 0, dtype);
}

uint32_t bits_of(double value, DType dtype) {
  std::array<std::byte, 4> raw{};
  store_element(raw.data(), 0, dtype, value);
  return std::bit_cast<uint32_t>(raw);
}

TEST(Elements, Fp8IsE4m3WithoutInfinity) {
  // The table of the OCP 8-bit format: exponent bias 7, S.1111.111 is NaN, the largest number 448.
  EXPECT_EQ(element_of(0x00, DType::kFp8), 0);
  EXPECT_EQ(element_of(0x01, DType::kFp8), 0x1p-9);
  EXPECT_EQ(element_of(0x07, DType::kFp8), 7 * 0x1p-9);
  EXPECT_EQ(element_of(0x08, DType::kFp8), 0x1p-6);
  EXPECT_EQ(element_of(0x38, DType::kFp8), 1);
  EXPECT_EQ(element_of(0x3c, DType::kFp8), 1.5);
  EXPECT_EQ(element_of(0x7e, DType::kFp8), 448);
  EXPECT_EQ(element_of(0xfe, DType::kFp8), -448);
  EXPECT_TRUE(std::isnan(element_of(0x7f, DType::kFp8)));
  EXPECT_TRUE(std::isnan(element_of(0xff, DType::kFp8)));
}

TEST(Elements, EveryNarrowNumberRoundTrips) {
  for (DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8}) {
    const uint32_t count = size_of(dtype) == 2 ? 0x10000 : 0x100;
    for (uint32_t bits = 0; bits < count; ++bits) {
      const double x = element_of(bits, dtype);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(element_of(bits_of(x, dtype), dtype)));
        continue;
      }
      ASSERT_EQ(bits_of(x, dtype), bits) << to_string(dtype);
    }
  }
}

TEST(Elements, RoundingIsToTheNearestAndTiesGoToEven) {
  // Against a search among all numbers of the format, by magnitude.
  for (DType dtype : {DType::kFp8, DType::kFp16, DType::kBf16}) {
    const uint32_t last = dtype == DType::kFp8 ? 0x7e : dtype == DType::kFp16 ? 0x7bff : 0x7f7f;
    for (uint32_t bits = 0; bits < last; bits += dtype == DType::kFp8 ? 1 : 37) {
      const double low = element_of(bits, dtype), high = element_of(bits + 1, dtype), middle = (low + high) / 2;
      ASSERT_EQ(spacing_of(low, dtype), high - low);
      ASSERT_EQ(round_to_dtype(std::nextafter(middle, 0), dtype), low);
      ASSERT_EQ(round_to_dtype(middle, dtype), bits % 2 ? high : low);
      ASSERT_EQ(round_to_dtype(-std::nextafter(middle, kInf), dtype), -high);
    }
  }
  EXPECT_EQ(round_to_dtype(1 + 0x1p-24, DType::kFp32), 1);
  EXPECT_EQ(round_to_dtype(1 + 3 * 0x1p-24, DType::kFp32), 1 + 0x1p-22);
  EXPECT_EQ(round_to_dtype(2.5, DType::kInt8), 2);
  EXPECT_EQ(round_to_dtype(-3.5, DType::kInt32), -4);
}

TEST(Elements, TheEndsOfTheRanges) {
  EXPECT_EQ(round_to_dtype(464.1, DType::kFp8), 448);
  EXPECT_EQ(round_to_dtype(-kInf, DType::kFp8), -448);
  EXPECT_EQ(bits_of(NAN, DType::kFp8), 0x7f);
  EXPECT_EQ(round_to_dtype(65519.9, DType::kFp16), 65504);
  EXPECT_EQ(round_to_dtype(65520, DType::kFp16), kInf);
  EXPECT_EQ(bits_of(-1e30, DType::kFp16), 0xfc00u);
  EXPECT_EQ(bits_of(-1e39, DType::kBf16), 0xff80u);
  EXPECT_EQ(bits_of(1e39, DType::kFp32), 0x7f800000u);
  EXPECT_EQ(round_to_dtype(200, DType::kInt8), 127);
  EXPECT_EQ(round_to_dtype(-kInf, DType::kInt8), -128);
  EXPECT_EQ(round_to_dtype(NAN, DType::kInt8), 0);
  EXPECT_EQ(round_to_dtype(3e9, DType::kInt32), 2147483647);
  EXPECT_EQ(bits_of(-3e9, DType::kInt32), 0x80000000u);
  EXPECT_EQ(bits_of(-0.0, DType::kFp8), 0x80u);
  EXPECT_EQ(bits_of(-1e-9, DType::kFp16), 0x8000u);
}

TEST(Elements, TensorCoresTruncateTf32) {
  EXPECT_EQ(as_operand(1 + 0x1p-10, DType::kTf32), 1 + 0x1p-10);
  EXPECT_EQ(as_operand(1 + 0x1p-10 - 0x1p-23, DType::kTf32), 1);
  EXPECT_EQ(as_operand(-1 - 0x1p-11 - 0x1p-12, DType::kTf32), -1);
  EXPECT_EQ(as_operand(1 + 0x1p-20, DType::kFp32), 1 + 0x1p-20);
}

TEST(Elements, TheDeviationOfRoundingIsTheObservedOne) {
  for (DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8}) {
    double squares = 0, predicted = 0;
    for (int i = 0; i < 1 << 16; ++i) {
      const double x = 1 + (i + 0.5) / (1 << 16) * 3, error = round_to_dtype(x, dtype) - x;
      squares += error * error;
      predicted += rounding_sigma(x, dtype) * rounding_sigma(x, dtype);
    }
    EXPECT_NEAR(squares / predicted, 1, 0.02) << to_string(dtype);
  }
}

TEST(Contents, PiecesHoldTheBytesOfTheWhole) {
  for (DType dtype : kAll)
    for (InputPattern pattern : {InputPattern::kNormal, InputPattern::kIntegers, InputPattern::kSpecial}) {
      const TensorContents contents{pattern, "bias", dtype};
      std::vector<std::byte> whole(20011 * size_of(dtype)), pieces(whole.size());
      contents.fill(0, whole);
      for (size_t at = 0, step = 1; at < whole.size(); at += step, step = step * 5 % 997 + 1)
        contents.fill(at, std::span(pieces).subspan(at, std::min(step, whole.size() - at)));
      EXPECT_EQ(whole, pieces);
      std::vector<double> values(1000);
      contents.values(13, values);
      for (size_t i = 0; i < values.size(); ++i) {
        const double stored = load_element(whole.data(), 13 + i, dtype);
        ASSERT_TRUE(values[i] == stored || (std::isnan(values[i]) && std::isnan(stored))) << to_string(dtype);
      }
    }
}

TEST(Contents, NormalHasMeanZeroAndItsVariance) {
  for (DType dtype : kAll) {
    const double deviation = dtype == DType::kInt8 || dtype == DType::kInt32 ? 32 : 1;
    std::vector<double> values(1 << 16);
    TensorContents{InputPattern::kNormal, "A", dtype}.values(0, values);
    double sum = 0, squares = 0;
    for (double v : values) sum += v / deviation, squares += v * v / deviation / deviation;
    const double n = static_cast<double>(values.size());
    EXPECT_LT(std::fabs(sum / n), 4 / std::sqrt(n)) << to_string(dtype);
    EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n) + 2e-3) << to_string(dtype);  // fp8 rounds by up to 1 / 16
  }
}

TEST(Contents, TensorsOfDifferentNamesAreIndependent) {
  std::vector<double> a(1 << 14), b(a.size());
  TensorContents{InputPattern::kNormal, "A", DType::kFp32}.values(0, a);
  TensorContents{InputPattern::kNormal, "B", DType::kFp32}.values(0, b);
  for (size_t shift : {0, 1, 2, 64}) {
    double product = 0;
    for (size_t i = 0; i + shift < a.size(); ++i) product += a[i + shift] * b[i];
    EXPECT_LT(std::fabs(product / static_cast<double>(a.size())), 4 / std::sqrt(static_cast<double>(a.size())));
  }
}

TEST(Contents, IntegersAreSmallAndSpecialsAreRare) {
  for (DType dtype : kAll) {
    std::vector<double> values(1 << 18);
    TensorContents{InputPattern::kIntegers, "x", dtype}.values(0, values);
    int seen[5] = {};
    for (double v : values) {
      ASSERT_TRUE(v == std::floor(v) && std::fabs(v) <= 2);
      ++seen[static_cast<int>(v) + 2];
    }
    for (int count : seen) EXPECT_NEAR(count / 52428.8, 1, 0.02);

    TensorContents{InputPattern::kSpecial, "x", dtype}.values(0, values);
    int nans = 0, plus = 0, minus = 0;
    for (double v : values) nans += std::isnan(v), plus += v == kInf, minus += v == -kInf;
    if (dtype == DType::kInt8 || dtype == DType::kInt32) {
      EXPECT_EQ(nans + plus + minus, 0);
    } else {
      EXPECT_NEAR(nans + plus + minus, 64, 32);
      EXPECT_GT(nans, 0);
      EXPECT_EQ(plus > 0, dtype != DType::kFp8);
      EXPECT_EQ(minus > 0, dtype != DType::kFp8);
    }
  }
}

/// Of the extreme rows, other tensors have a NaN here and there; a residual has nothing else.
TEST(TensorContents, FewElementsBesideExtremeRowsAreNan) {
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32, DType::kFp8}) {
    std::vector<double> residual(4096), weight(4096);
    TensorContents{InputPattern::kExtremeRows, "residual", dtype}.values(0, residual);
    TensorContents{InputPattern::kExtremeRows, "weight", dtype}.values(0, weight);
    for (size_t i = 0; i < residual.size(); ++i) {
      const bool rare = i == 13 || i == 53 || i == 213 || i == 853 || i == 3413;
      EXPECT_EQ(std::isnan(residual[i]), rare) << i;
      EXPECT_EQ(std::isnan(weight[i]), rare) << i;
      if (!rare) {
        EXPECT_EQ(residual[i], 0);
      }
    }
    std::vector<std::byte> bytes(100 * static_cast<size_t>(size_of(dtype)));
    TensorContents{InputPattern::kExtremeRows, "residual", dtype}.fill(170 * static_cast<uint64_t>(size_of(dtype)),
                                                                       bytes);
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(std::isnan(load_element(bytes.data(), i, dtype)), i == 43) << i;
  }
  std::vector<double> whole(100);
  TensorContents{InputPattern::kExtremeRows, "table", DType::kInt32}.values(0, whole);
  EXPECT_FALSE(std::isnan(whole[13]));
}

TEST(Judge, NamesTheWorstElementAndCountsMissingOnes) {
  std::vector<double> told;
  const ElementReader read(
      [](const std::string&, uint64_t, std::span<double>, std::vector<bool>*) { return Result<void>(); }, nullptr,
      [&](const std::string&, double got, double, double) { told.push_back(got); });
  Judge judge("y", read);
  judge.element(0, 0, 1.0, 1.1, 0.2);
  Comparison fine;
  judge.add_to(fine);
  EXPECT_NEAR(fine.worst, 0.5, 1e-9);
  EXPECT_EQ(fine.failure, "");
  judge.element(3, 7, 2.0, 1.0, 0.25);
  Comparison off;
  judge.add_to(off);
  EXPECT_EQ(off.failure, "y[row 3, column 7] is 2, 1 was expected within 0.25 (4 times the tolerance)");
  judge.unwritten(4, -1);
  judge.unwritten(5, -1);
  Comparison missing;
  judge.add_to(missing);
  EXPECT_EQ(missing.failure, "y[row 4] and 1 more elements were never written");
  EXPECT_EQ(told, (std::vector<double>{1, 2})) << "the reader is told of each element";
}

TEST(Judge, NanAndInfinitiesAreRightOnlyWhereTheyAreExpected) {
  const ElementReader read(
      [](const std::string&, uint64_t, std::span<double>, std::vector<bool>*) { return Result<void>(); });
  const auto worst = [&](double got, double expected) {
    Judge judge("y", read);
    judge.element(0, 0, got, expected, 1);
    Comparison out;
    judge.add_to(out);
    return out.worst;
  };
  EXPECT_EQ(worst(NAN, NAN), 0);
  EXPECT_EQ(worst(-kInf, -kInf), 0);
  EXPECT_GT(worst(NAN, 0), 1e6);
  EXPECT_GT(worst(0, NAN), 1e6);
  EXPECT_GT(worst(kInf, -kInf), 1e6);
  EXPECT_GT(worst(1e300, kInf), 1e6);
}

}  // namespace
}  // namespace roofgen::elements_test
