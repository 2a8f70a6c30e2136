#include "bench/peers/gemm_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "bench/peers/stream_timer.h"

namespace roofgen::peers::gemm_case_test {
namespace {

TEST(GemmCase, FormatsRoundTrip) {
  EXPECT_EQ(value_of(Format::kBf16, 0x3f80), 1);
  EXPECT_EQ(value_of(Format::kFp16, 0xc000), -2);
  EXPECT_EQ(value_of(Format::kFp8, 0x38), 1);
  EXPECT_EQ(value_of(Format::kFp8, 0x7e), 448);
  EXPECT_EQ(value_of(Format::kFp16, 1), std::ldexp(1.0, -24));
  EXPECT_TRUE(std::isnan(value_of(Format::kBf16, 0xffff)));
  EXPECT_TRUE(std::isnan(value_of(Format::kFp8, 0x7f)));
}

TEST(GemmCase, InputsAreNormal) {
  for (Format f : {Format::kBf16, Format::kFp16, Format::kFp8}) {
    double sum = 0, squares = 0;
    constexpr int kCount = 100'000;
    for (uint64_t i = 0; i < kCount; ++i) {
      const double x = value_of(f, normal_bits(f, 3, i));
      sum += x;
      squares += x * x;
    }
    EXPECT_NEAR(sum / kCount, 0, 0.02) << to_string(f);
    EXPECT_NEAR(squares / kCount, 1, 0.03) << to_string(f);
  }
  EXPECT_NE(normal_bits(Format::kBf16, 1, 5), normal_bits(Format::kBf16, 2, 5));
}

/// A product computed as the case says, rounded to bf16 through fp32; `cut` leaves the last of the depth out.
struct Problem {
  explicit Problem(const GemmCase& c, int64_t cut = 0) {
    for (int64_t i = 0; i < c.a_elements(); ++i) a.push_back(normal_bits(c.format, 1, static_cast<uint64_t>(i)));
    for (int64_t i = 0; i < c.b_elements(); ++i) b.push_back(normal_bits(c.format, 2, static_cast<uint64_t>(i)));
    for (int64_t i = 0; i < c.n; ++i) bias.push_back(normal_bits(Format::kBf16, 3, static_cast<uint64_t>(i)));
    d.assign(static_cast<size_t>(c.d_elements()), 0xffff);
    for (int64_t o = 0; o < c.outer; ++o)
      for (int64_t p = 0; p < c.batch; ++p)
        for (int64_t m = 0; m < c.m; ++m)
          for (int64_t n = 0; n < c.n; ++n) {
            double sum = 0;
            for (int64_t k = 0; k < c.k - cut; ++k)
              sum += value_of(c.format, a[static_cast<size_t>(o * c.a_outer + p * c.a_stride + m * c.a_pitch + k)]) *
                     value_of(c.format, b[static_cast<size_t>(o * c.b_outer + p * c.b_stride +
                                                              (c.b_is_kn ? k * c.b_pitch + n : n * c.b_pitch + k))]);
            const auto y = static_cast<float>(
                apply(c.epilogue, sum * c.scale, value_of(Format::kBf16, bias[static_cast<size_t>(n)])));
            uint32_t word;
            std::memcpy(&word, &y, 4);
            d[static_cast<size_t>(o * c.d_outer + p * c.d_stride + m * c.d_pitch + n)] =
                static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
          }
  }
  double error(const GemmCase& c) const { return error_over_tolerance(c, {a, b, bias, d}, places(c, 200)); }
  std::vector<uint16_t> a, b, bias, d;
};

TEST(GemmCase, RightPassesAndWrongFailsByFar) {
  for (Epilogue e : {Epilogue::kNone, Epilogue::kBias, Epilogue::kRelu, Epilogue::kGeluBias}) {
    const GemmCase c = *plain_case(48, 32, 64, Format::kBf16, e);
    EXPECT_LE(Problem(c).error(c), 1) << to_string(e);
    EXPECT_GT(Problem(c, 1).error(c), 5) << to_string(e);
    Problem unwritten(c);
    unwritten.d.back() = 0xffff;
    EXPECT_TRUE(std::isinf(unwritten.error(c)));
  }
}

TEST(GemmCase, AttentionStridesReachEveryElementOnce) {
  const auto cases = attention_cases(24, 20, 16, 2, 3, Format::kBf16);
  ASSERT_TRUE(cases);
  for (const GemmCase& c : *cases) {
    EXPECT_LE(Problem(c).error(c), 1) << c.name;
    std::vector<int> written(static_cast<size_t>(c.d_elements()), 0);
    for (int64_t o = 0; o < c.outer; ++o)
      for (int64_t p = 0; p < c.batch; ++p)
        for (int64_t m = 0; m < c.m; ++m)
          for (int64_t n = 0; n < c.n; ++n)
            ++written[static_cast<size_t>(o * c.d_outer + p * c.d_stride + m * c.d_pitch + n)];
    for (int count : written) EXPECT_LE(count, 1);
  }
  EXPECT_EQ((*cases)[0].flops(), 2.0 * 24 * 20 * 16 * 6);
}

TEST(GemmCase, BadSizesAreUsage) {
  EXPECT_EQ(plain_case(4, 8, 8, Format::kBf16, Epilogue::kNone).error().exit, Exit::kUsage);
  EXPECT_FALSE(plain_case(24, 24, 24, Format::kFp8, Epilogue::kNone));
  EXPECT_FALSE(parse_epilogue("swish"));
  EXPECT_FALSE(attention_cases(0, 1, 16, 1, 1, Format::kBf16));
  EXPECT_FALSE(suite(Format::kBf16).empty());
}

TEST(Turns, RotateAndStop) {
  std::string order;
  double now = 0;
  Stage stage;
  stage.run = [&](size_t i, size_t set) -> Result<void> {
    order += static_cast<char>('a' + i);
    order += static_cast<char>('0' + set);
    return {};
  };
  stage.time = [&](const Gpu::Queue& queue, bool cold) -> Result<double> {
    ROOFGEN_CHECK(queue());
    now += 0.1;
    return cold ? 200.0 : 100.0;
  };
  stage.clock = {[&] { return now; }, [&](double s) { now += s; }};
  Rounds rounds;
  rounds.warmup_s = 0;
  rounds.most = 2;
  const auto turns = take_turns(stage, 3, 2, rounds);
  ASSERT_TRUE(turns);
  EXPECT_EQ(order, "a0b0c0a0b0c0b1c1a1b1c1a1");
  EXPECT_EQ(turns->times.at("cold")[1], (std::vector<double>{200, 200}));
  EXPECT_EQ(turns->stopped, "most rounds");
  rounds.most = 300;
  EXPECT_EQ(take_turns(stage, 1, 1, rounds)->stopped, "settled");
  rounds.settled = -1;
  rounds.seconds = 3;
  EXPECT_EQ(take_turns(stage, 1, 1, rounds)->stopped, "out of time");
  EXPECT_EQ(Rounds::of("burst", 0, 1).most, 10);
  stage.run = [](size_t, size_t) -> Result<void> { return Error{Exit::kFailed, "gone"}; };
  EXPECT_FALSE(take_turns(stage, 1, 1, rounds));
}

}  // namespace
}  // namespace roofgen::peers::gemm_case_test
