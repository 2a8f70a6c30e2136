// Sums of e4m3 and e5m2 products: what tensor cores of sm_90 (wgmma) and sm_89 (mma.sync) cut off, bit by bit
// (runtime/sim/math_fp8.h). Every instruction set of the host is tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "runtime/sim/opcode_table.h"
#include "support.h"

namespace roofgen::sim_test::fp8_test {
namespace {

using sim::Multiplicand;
using sim::WgmmaSum;

int smallest_exponent(Multiplicand type) { return type == Multiplicand::kE4m3 ? -6 : -14; }

int exponent_of(double x, int smallest) {
  int e = 0;
  std::frexp(x, &e);
  return std::max(e - 1, smallest);
}

double cut_off(double x, int exponent) { return std::ldexp(std::trunc(std::ldexp(x, -exponent)), exponent); }

/// The rule, in double precision: with sums below 2^40 nothing is rounded.
double rule(Multiplicand a_type, Multiplicand b_type, const std::vector<float>& a, const std::vector<float>& b,
            double before) {
  std::optional<int> greatest;
  const auto consider = [&](int exponent) { greatest = std::max(greatest.value_or(exponent), exponent); };
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != 0 && b[i] != 0)
      consider(exponent_of(a[i], smallest_exponent(a_type)) + exponent_of(b[i], smallest_exponent(b_type)));
  if (before != 0) consider(exponent_of(before, -126));
  if (!greatest) return 0;
  double sum = cut_off(before, *greatest - 13);
  for (size_t i = 0; i < a.size(); ++i) sum += cut_off(double{a[i]} * b[i], *greatest - 13);
  return sum == 0 ? 0 : cut_off(sum, exponent_of(sum, -126) - 13);
}

/// Sums of 16 x n elements. Matrices in the order of WgmmaTable.
struct Tile {
  uint32_t n, k;
  Multiplicand a_type = Multiplicand::kE4m3, b_type = Multiplicand::kE4m3;
  std::vector<float> a = std::vector<float>(16 * k), b = std::vector<float>(n * k), before = std::vector<float>(16 * n);
  float& a_at(uint32_t row, uint32_t kk) { return a[(row / 8 * k + kk) * 8 + row % 8]; }
  float& b_at(uint32_t column, uint32_t kk) { return b[(column / 8 * k + kk) * 8 + column % 2 * 4 + column % 8 / 2]; }
  double expected(uint32_t row, uint32_t column, bool keeps) {
    std::vector<float> x, y;
    for (uint32_t kk = 0; kk < k; ++kk) x.push_back(a_at(row, kk)), y.push_back(b_at(column, kk));
    return rule(a_type, b_type, x, y, keeps ? before[row * n + column] : 0);
  }
  std::vector<float> sums(const sim::LaneTable& host, bool keeps) const {
    alignas(64) static uint32_t registers[128][32];
    uint32_t* rows[128];
    for (int i = 0; i < 128; ++i) rows[i] = registers[i];
    std::vector<float> out(before);
    const auto place = [&](uint32_t row, uint32_t column) {
      return &registers[4 * (column / 8) + 2 * (row / 8) + column % 2][4 * (row % 8) + column % 8 / 2];
    };
    for (uint32_t i = 0; i < 16 * n; ++i) *place(i / n, i % n) = std::bit_cast<uint32_t>(before[i]);
    uint32_t* const* all = rows;
    host.wgmma.multiply_fp8(a_type, b_type, WgmmaSum::kF32, &all, a.data(), b.data(), n, k, &keeps, 1);
    for (uint32_t i = 0; i < 16 * n; ++i) out[i] = std::bit_cast<float>(*place(i / n, i % n));
    return out;
  }
};

void expect_sum(const std::vector<std::pair<float, float>>& products, float before, double expected,
                Multiplicand type = Multiplicand::kE4m3) {
  Tile t{8, 32, type, type};
  for (uint32_t i = 0; i < products.size(); ++i) t.a_at(5, i) = products[i].first, t.b_at(3, i) = products[i].second;
  t.before[5 * 8 + 3] = before;
  EXPECT_EQ(t.expected(5, 3, true), expected);
  for (const sim::LaneTable* host : sim::all_host_lanes()) EXPECT_EQ(t.sums(*host, true)[5 * 8 + 3], expected);
}

// Of a sum near 1 the unit is 2^-13.
TEST(Fp8Sums, ProductsBelowTheUnitAreCutOff) {
  expect_sum({{1, 1}, {0x1p-9f, 0x1p-4f}}, 0, 1 + 0x1p-13);
  expect_sum({{1, 1}, {0x1p-9f, 0x1p-5f}}, 0, 1);
  expect_sum({{1, 1}, {-0x1p-9f, 0x1p-5f}}, 0, 1);  // towards zero, not down
  expect_sum({{-1, 1}, {0x1p-9f, 0x1p-5f}}, 0, -1);
  expect_sum({{1, 1}, {0x1p-6f, 0x1.8p-7f}}, 0, 1 + 0x1p-13);  // 1.5 units
  // Each by itself: 31 halves of a unit are nothing.
  std::vector<std::pair<float, float>> halves(32, {0x1p-9f, 0x1p-5f});
  halves[17] = {1, 1};
  expect_sum(halves, 0, 1);
}

TEST(Fp8Sums, TheExponentOfAProductIsThatOfItsFactors) {
  // 2.25 has the exponent 0 of 1.5 and 1.5: two units of 2^-13 are added before the sum is cut off at 2^-12.
  expect_sum({{1.5, 1.5}, {0x1p-9f, 0x1p-4f}, {0x1p-9f, 0x1p-4f}}, 0, 2.25 + 0x1p-12);
  expect_sum({{1.5, 1.5}, {0x1p-9f, 0x1p-4f}}, 0, 2.25);
  // Zero has none, although 0 x 2^8 would have that of 4.
  expect_sum({{0, 256}, {0x1p-9f, 0x1p-9f}}, 0, 0x1p-18);
  // That of a subnormal number is -6: 2^-19 is the unit, not 2^-22.
  expect_sum({{0x1p-9f, 1}}, 0x1p-19f, 0x1p-9 + 0x1p-19);
  expect_sum({{0x1p-9f, 1}}, 0x1p-20f, 0x1p-9);
  // In e5m2 it is -14.
  expect_sum({{0x1p-16f, 1}}, 0x1p-27f, 0x1p-16 + 0x1p-27, Multiplicand::kE5m2);
  expect_sum({{0x1p-16f, 1}}, 0x1p-28f, 0x1p-16, Multiplicand::kE5m2);
}

TEST(Fp8Sums, TheSumBeforeIsCutOffToo) {
  expect_sum({}, 1 + 0x1p-13f + 0x1p-14f, 1 + 0x1p-13);
  expect_sum({}, -1 - 0x1p-13f - 0x1p-14f, -1 - 0x1p-13);
  expect_sum({}, 0x1.8p-139f, 0x1p-139);  // below 2^-126 the unit is 2^-139
  expect_sum({}, 0x1.ffffp120f, 0x1.fff8p120);
  expect_sum({{1, 1}}, 0x1p14f, 0x1p14);
  expect_sum({{3, 1}}, 0x1p14f, 0x1p14 + 2);
  expect_sum({{448, 448}}, 0x1p120f, 0x1p120);
  expect_sum({{448, 448}}, 0x1p-120f, 448.0 * 448);
  expect_sum({{1, 1}, {-1, 1}}, 0, 0);
}

TEST(Fp8Sums, TheResultHasThirteenFractionBits) {
  // 32 x 1.875^2 = 112.5; with 2^-7, which is above the unit of the products, 112.5078125 needs 7 + 6 bits.
  std::vector<std::pair<float, float>> products(31, {1.875f, 1.875f});
  products.push_back({0x1p-6f, 0.5f});
  const double sum = 31 * 1.875 * 1.875 + 0x1p-7;
  expect_sum(products, 0, sum);
  products.back() = {0x1p-6f, 0x1.8p-2f};  // 1.5 units of 2^-8: cut off at 2^-7
  expect_sum(products, 0, sum - 0x1p-7);
  products.back() = {0x1p-6f, 0x1.8p-1f};
  expect_sum(products, 0, sum);
}

TEST(Fp8Sums, HalvesAreRoundedToNearest) {
  for (const sim::LaneTable* host : sim::all_host_lanes()) {
    alignas(64) static uint32_t registers[128][32];
    uint32_t* rows[128];
    for (int i = 0; i < 128; ++i) rows[i] = registers[i];
    std::vector<float> a(16 * 32), b(8 * 32);
    a[0] = b[0] = 1, a[8] = 0x1p-6f, b[8] = 0x1.8p-5f;  // 1 + 1.5 x 2^-11, between two halves
    uint32_t* const* all = rows;
    const bool keeps = false;
    host->wgmma.multiply_fp8(Multiplicand::kE4m3, Multiplicand::kE4m3, WgmmaSum::kF16, &all, a.data(), b.data(), 8, 32,
                             &keeps, 1);
    EXPECT_EQ(registers[0][0] & 0xffff, 0x3c01u) << host->isa;
  }
}

/// Random elements: all bits, few exponents, many zeros.
std::function<float()> elements(std::mt19937& random, Multiplicand type, int kind) {
  const int mantissa = type == Multiplicand::kE4m3 ? 3 : 2, bias = type == Multiplicand::kE4m3 ? 7 : 15,
            exponents = type == Multiplicand::kE4m3 ? 15 : 30;
  return [=, &random] {
    const int fraction = static_cast<int>(random() % (1u << mantissa));
    const int exponent = kind == 1 ? bias - 3 + static_cast<int>(random() % 6)
                                   : static_cast<int>(random() % static_cast<uint32_t>(exponents));
    if (kind == 2 && random() % 2) return 0.0f;
    const double x = exponent ? std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa)
                              : std::ldexp(fraction, 1 - bias - mantissa);
    return static_cast<float>(random() % 2 ? x : -x);
  };
}

TEST(Fp8Sums, RandomTilesFollowTheRule) {
  std::mt19937 random(11);
  for (const Multiplicand a_type : {Multiplicand::kE4m3, Multiplicand::kE5m2})
    for (const Multiplicand b_type : {Multiplicand::kE4m3, Multiplicand::kE5m2})
      for (const uint32_t n : {8u, 24u, 72u, 256u})
        for (int kind = 0; kind < 3; ++kind) {
          Tile t{n, n == 24 ? 16u : 32u, a_type, b_type};
          const auto of_a = elements(random, a_type, kind), of_b = elements(random, b_type, kind);
          for (float& x : t.a) x = of_a();
          for (float& x : t.b) x = of_b();
          for (float& x : t.before)
            x = std::ldexp(static_cast<float>(static_cast<int>(random() % 65536)) - 32768.0f,
                           static_cast<int>(random() % 24) - 16) +
                0x1p-14f;
          const bool keeps = n != 72;
          for (const sim::LaneTable* host : sim::all_host_lanes()) {
            const std::vector<float> got = t.sums(*host, keeps);
            for (uint32_t i = 0; i < 16 * n; ++i)
              ASSERT_EQ(got[i], t.expected(i / n, i % n, keeps))
                  << host->isa << " n " << n << " kind " << kind << " row " << i / n << " column " << i % n;
          }
        }
}

TEST(Fp8Sums, InfinitiesAndNansPass) {
  Tile t{24, 32, Multiplicand::kE5m2, Multiplicand::kE5m2};
  std::mt19937 random(12);
  const auto draw = elements(random, Multiplicand::kE5m2, 1);
  for (float& x : t.a) x = draw();
  for (float& x : t.b) x = draw();
  t.a_at(2, 7) = INFINITY;
  t.b_at(9, 4) = NAN;
  t.before[3 * 24 + 11] = -INFINITY;
  t.before[3 * 24 + 12] = NAN;
  for (const sim::LaneTable* host : sim::all_host_lanes()) {
    const std::vector<float> got = t.sums(*host, true);
    for (uint32_t i = 0; i < got.size(); ++i) {
      const uint32_t row = i / 24, column = i % 24;
      if (column == 9 || i == 3 * 24 + 12)
        EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), 0x7fffffffu);
      else if (row == 2)
        EXPECT_EQ(got[i], t.b_at(column, 7) > 0 ? INFINITY : -INFINITY);
      else if (i == 3 * 24 + 11)
        EXPECT_EQ(got[i], -INFINITY);
      else
        EXPECT_EQ(got[i], t.expected(row, column, true));
    }
  }
}

}  // namespace
}  // namespace roofgen::sim_test::fp8_test
