// Outputs that compare_formula accepts or rejects: those of a correct kernel, and deliberately wrong ones.
#include "generator/ops/formula_reference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace roofgen::formula_reference_test {
namespace {

using pointwise::Definition;
using pointwise::Estimate;
using pointwise::Formula;
using pointwise::Output;
using pointwise::Vocabulary;

constexpr Extent kExtent{1, 1, 37, 65};
constexpr double kInf = std::numeric_limits<double>::infinity();

Formula parse(std::vector<Definition> definitions, std::vector<Output> outputs, std::vector<TensorArg> tensors) {
  Vocabulary vocabulary;
  vocabulary.tensors = std::move(tensors);
  auto made = Formula::parse(std::move(definitions), std::move(outputs), std::move(vocabulary));
  EXPECT_TRUE(made) << to_string(made.error());
  return *made;
}

std::vector<double> contents(const char* name, DType dtype, uint64_t count,
                             InputPattern pattern = InputPattern::kNormal) {
  std::vector<double> out(count);
  TensorContents{pattern, name, dtype}.values(0, out);
  return out;
}

/// The accumulators: numbers that fp32 represents exactly.
double acc_at(int64_t m, int64_t n) { return std::ldexp(static_cast<double>((m * 977 + n * 131) % 4093 - 2046), -8); }
const SourceRow kSource = [](int64_t row, int64_t first, int64_t count) {
  std::vector<Estimate> out;
  for (int64_t n = first; n < first + count; ++n) out.push_back({acc_at(row, n), 0});
  return out;
};

/// A device whose buffers hold `value(m, n)`, rounded by `store`.
using Store = double (*)(double, DType);
struct Memory {
  std::map<std::string, std::vector<double>> buffers;
  int64_t unwritten = -1;
  ElementReader reader() const {
    return [this](const std::string& buffer, uint64_t first, std::span<double> out,
                  std::vector<bool>* valid) -> Result<void> {
      const std::vector<double>& all = buffers.at(buffer);
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = all.at(first + i);
        if (valid && static_cast<int64_t>(first + i) == unwritten) (*valid)[i] = false;
      }
      return {};
    };
  }
};

template <class F>
std::vector<double> matrix(const F& value, DType dtype, Store store = round_to_dtype) {
  std::vector<double> out;
  for (int64_t m = 0; m < kExtent.rows; ++m)
    for (int64_t n = 0; n < kExtent.cols; ++n) out.push_back(store(value(m, n), dtype));
  return out;
}

double truncate_bf16(double x, DType) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & 0xffff0000u);
}

Comparison compare(const Formula& formula, const Memory& memory, Region region = {0, 0, 0, kExtent.rows},
                   InputPattern pattern = InputPattern::kNormal, const SourceRow& source = kSource) {
  auto out = compare_formula(formula, region, kExtent, pattern, source, memory.reader());
  EXPECT_TRUE(out) << to_string(out.error());
  return *out;
}

struct Linear {
  Formula formula = parse({{"y", "acc * 0.5 + bias[n] + residual[m,n]"}}, {{"y", "C", DType::kBf16}},
                          {{"bias", DType::kFp32, {"n"}}, {"residual", DType::kBf16, {"m", "n"}}});
  std::vector<double> bias = contents("bias", DType::kFp32, 65), residual = contents("residual", DType::kBf16, 37 * 65);
  double value(int64_t m, int64_t n, int64_t shift = 0) const {
    const float sum =
        static_cast<float>(acc_at(m, n)) * 0.5f + static_cast<float>(bias[static_cast<size_t>((n + shift) % 65)]);
    return sum + static_cast<float>(residual[static_cast<size_t>(m * 65 + n)]);
  }
};

TEST(FormulaReference, APlainEpiloguePasses) {
  const Linear linear;
  const Comparison c = compare(
      linear.formula, {{{"C", matrix([&](int64_t m, int64_t n) { return linear.value(m, n); }, DType::kBf16)}}});
  EXPECT_EQ(c.failure, "");
  EXPECT_EQ(c.rows, 37u);
  EXPECT_GT(c.worst, 0.9);  // rounding uses half an ulp
  EXPECT_LE(c.worst, 1);
}

TEST(FormulaReference, TruncationInsteadOfRoundingIsCaught) {
  const Linear linear;
  EXPECT_NE(
      compare(linear.formula,
              {{{"C", matrix([&](int64_t m, int64_t n) { return linear.value(m, n); }, DType::kBf16, truncate_bf16)}}})
          .failure,
      "");
}

TEST(FormulaReference, AWrongIndexAndAMissingElementAreNamed) {
  const Linear linear;
  EXPECT_NE(compare(linear.formula,
                    {{{"C", matrix([&](int64_t m, int64_t n) { return linear.value(m, n, n == 64); }, DType::kBf16)}}})
                .failure.find("column 64]"),
            std::string::npos);
  const std::vector<double> right = matrix([&](int64_t m, int64_t n) { return linear.value(m, n); }, DType::kBf16);
  EXPECT_EQ(compare(linear.formula, {{{"C", right}}, 5 * 65 + 3}).failure,
            "C[row 5, column 3] and 0 more elements were never written");
  // Elements outside of the region are not compared.
  EXPECT_EQ(compare(linear.formula, {{{"C", right}}, 5 * 65 + 3}, {0, 0, 6, 37}).failure, "");
  EXPECT_EQ(compare(linear.formula, {{{"C", right}}, 5 * 65 + 3}, {0, 0, 0, 37, 4, 65}).failure, "");
}

TEST(FormulaReference, TensorsOfAnyIndices) {
  const Formula formula =
      parse({{"y", "acc + row[m] + turned[n,m] + one"}}, {{"y", "C", DType::kFp32}},
            {{"row", DType::kFp16, {"m"}}, {"turned", DType::kFp8, {"n", "m"}}, {"one", DType::kInt8, {}}});
  const auto row = contents("row", DType::kFp16, 37), turned = contents("turned", DType::kFp8, 37 * 65),
             one = contents("one", DType::kInt8, 1);
  const auto y = [&](int64_t m, int64_t n) {
    return acc_at(m, n) + row[static_cast<size_t>(m)] + turned[static_cast<size_t>(n * 37 + m)] + one[0];
  };
  EXPECT_EQ(compare(formula, {{{"C", matrix(y, DType::kFp32)}}}).failure, "");
  EXPECT_EQ(compare(formula, {{{"C", matrix(y, DType::kFp32)}}}, {0, 0, 10, 20, 30, 40}).failure, "");
}

TEST(FormulaReference, RowsQuantisedWithTheirScale) {
  const Formula formula = parse({{"scale", "amax(acc) / 127"}, {"q", "acc / scale"}},
                                {{"q", "C", DType::kInt8}, {"scale", "row_scale", DType::kFp32, true}}, {});
  std::vector<double> scales;
  for (int64_t m = 0; m < kExtent.rows; ++m) {
    double largest = 0;
    for (int64_t n = 0; n < kExtent.cols; ++n) largest = std::max(largest, std::fabs(acc_at(m, n)));
    scales.push_back(static_cast<float>(largest) / 127.0f);
  }
  const auto q = [&](int64_t m, int64_t n) {
    return static_cast<float>(acc_at(m, n)) / static_cast<float>(scales[static_cast<size_t>(m)]);
  };
  Memory memory{{{"C", matrix(q, DType::kInt8)}, {"row_scale", scales}}};
  EXPECT_EQ(compare(formula, memory).failure, "");
  memory.buffers["row_scale"][7] *= 1.0001;
  EXPECT_EQ(compare(formula, memory).failure.substr(0, 17), "row_scale[row 7] ");
  const auto part =
      compare_formula(formula, {0, 0, 0, 37, 0, 64}, kExtent, InputPattern::kNormal, kSource, memory.reader());
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message, "columns 0 to 64 of 65 cannot be compared: the formula reduces over the row");
}

TEST(FormulaReference, EndsOfTheRange) {
  // The largest fp8 value is 448: larger values and infinities saturate, and NaN stays NaN.
  const Formula fp8 = parse({{"y", "acc * 100"}}, {{"y", "C", DType::kFp8}}, {});
  EXPECT_EQ(
      compare(fp8, {{{"C", matrix([](int64_t m, int64_t n) { return 100 * acc_at(m, n); }, DType::kFp8)}}}).failure,
      "");
  EXPECT_NE(
      compare(fp8, {{{"C", matrix([](int64_t m, int64_t n) { return std::fabs(100 * acc_at(m, n)); }, DType::kFp8)}}})
          .failure,
      "");

  const auto all = [](double value, double sigma, double got) {
    const SourceRow source = [=](int64_t, int64_t, int64_t count) {
      return std::vector<Estimate>(static_cast<size_t>(count), {value, sigma});
    };
    const Formula identity = parse({{"y", "acc"}}, {{"y", "C", DType::kFp16}}, {});
    return compare(identity, {{{"C", std::vector<double>(37 * 65, got)}}}, {0, 0, 0, 37}, InputPattern::kNormal, source)
        .failure;
  };
  // 65520 is the first number that rounds to infinity.
  EXPECT_EQ(all(65530, 0, kInf), "");
  EXPECT_NE(all(65530, 0, 65504), "");
  EXPECT_EQ(all(65530, 2, 65504), "");
  EXPECT_EQ(all(65510, 2, kInf), "");
  EXPECT_NE(all(65510, 1, kInf), "");
  EXPECT_NE(all(65510, 2, -kInf), "");
  EXPECT_EQ(all(kInf, NAN, kInf), "");
  EXPECT_EQ(all(NAN, NAN, NAN), "");
  EXPECT_NE(all(NAN, NAN, 1), "");
  EXPECT_NE(all(1, NAN, 1.1), "");  // an unknown error permits nothing
}

TEST(FormulaReference, SpecialTensorsPropagate) {
  constexpr Extent kWide{1, 1, 2, 16384};
  const Formula formula =
      parse({{"y", "max(acc, bias[n] * 0)"}}, {{"y", "C", DType::kFp32}}, {{"bias", DType::kBf16, {"n"}}});
  const std::vector<double> bias = contents("bias", DType::kBf16, kWide.cols, InputPattern::kSpecial);
  int special = 0;
  for (double b : bias) special += !std::isfinite(b);
  ASSERT_GT(special, 0);
  Memory memory;
  for (int64_t i = 0; i < 2 * kWide.cols; ++i) {
    const double b = bias[static_cast<size_t>(i % kWide.cols)] * 0;  // NaN for an infinity; max propagates NaN
    memory.buffers["C"].push_back(std::isnan(b) ? b : std::max(acc_at(i / kWide.cols, i % kWide.cols), b));
  }
  const auto failure = [&] {
    return compare_formula(formula, {0, 0, 0, 2}, kWide, InputPattern::kSpecial, kSource, memory.reader())->failure;
  };
  EXPECT_EQ(failure(), "");
  for (double& y : memory.buffers["C"])
    if (std::isnan(y)) y = 0;  // like fmaxf
  EXPECT_NE(failure(), "");
}

}  // namespace
}  // namespace roofgen::formula_reference_test
