// Operations of machine instructions on the value of one lane, and what accesses of all lanes cost.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/sass/instruction.h"

namespace roofgen::sass {

inline float as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }

/// lo 32 bits first
inline uint64_t pair(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

template <class T>
inline bool compare(const Instruction& i, T a, T b) {
  if (i.has(kLt)) return a < b;
  if (i.has(kEq)) return a == b;
  if (i.has(kLe)) return a <= b;
  if (i.has(kGt)) return a > b;
  if (i.has(kNe)) return a != b;
  if (i.has(kGe)) return a >= b;
  return false;
}

inline bool compare_floats(const Instruction& i, float a, float b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (i.has(kNum)) return !unordered;
  if (i.has(kNan) && !i.has(kLt | kEq | kLe | kGt | kNe | kGe)) return unordered;
  if (unordered) return i.has(kUnordered);
  return compare(i, a, b);
}

inline uint32_t combine(const Instruction& i, uint32_t result, uint32_t with) {
  if (i.has(kOr)) return result | with;
  if (i.has(kXor)) return result ^ with;
  return result & with;
}

inline uint32_t permute(uint32_t a, uint32_t selector, uint32_t b) {
  const uint64_t bytes = pair(a, b);
  uint32_t out = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const uint32_t s = selector >> 4 * k & 0xf;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (s & 7)) & 0xff;
    if (s & 8) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << 8 * k;
  }
  return out;
}

inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  const auto bit = [=](unsigned k) { return 0 - (table >> k & 1); };
  const auto choose = [](uint32_t by, uint32_t one, uint32_t zero) { return (by & one) | (~by & zero); };
  return choose(a, choose(b, choose(c, bit(7), bit(6)), choose(c, bit(5), bit(4))),
                choose(b, choose(c, bit(3), bit(2)), choose(c, bit(1), bit(0))));
}

inline uint32_t shift(const Instruction& i, uint32_t low, uint32_t by, uint32_t high) {
  const bool is_signed = i.has(kS32 | kS64), wide = i.has(kU64 | kS64);
  const uint32_t most = wide ? 64 : 32;
  const uint32_t s = i.has(kW) ? by & (most - 1) : std::min(by, most);
  const uint64_t both = pair(low, high);
  if (i.has(kLeft)) {
    const uint64_t out = s >= 64 ? 0 : both << s;
    return static_cast<uint32_t>(i.has(kHi) ? out >> 32 : out);
  }
  uint64_t out = 0;
  if (is_signed)
    out = static_cast<uint64_t>(static_cast<int64_t>(both) >> std::min(s, 63u));
  else
    out = s >= 64 ? 0 : both >> s;
  return static_cast<uint32_t>(i.has(kHi) ? out >> 32 : out);
}

inline float special_function(const Instruction& i, float x) {
  if (i.has(kRcp)) return 1 / x;
  if (i.has(kRsq)) return 1 / std::sqrt(x);
  if (i.has(kSqrt)) return std::sqrt(x);
  if (i.has(kEx2)) return std::exp2(x);
  if (i.has(kLg2)) return std::log2(x);
  if (i.has(kSin)) return std::sin(x);
  if (i.has(kCos)) return std::cos(x);
  return std::nanf("");
}

/// An integer as a float; `up`: the next one that is not less, otherwise the nearest.
template <class T>
inline float to_float(T x, bool up) {
  const auto out = static_cast<float>(x);
  return up && static_cast<__int128>(out) < static_cast<__int128>(x) ? std::nextafter(out, INFINITY) : out;
}

/// Values out of range become the nearest limit; NaN becomes 0, or the upper bit alone in 64 bits (PTX ISA, cvt).
template <class T>
T saturated(float x) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(x)) return sizeof(T) == 8 ? static_cast<T>(uint64_t{1} << 63) : 0;
  if (x >= static_cast<float>(Limits::max())) return Limits::max();
  if (x <= static_cast<float>(Limits::min())) return Limits::min();
  return static_cast<T>(x);
}

/// Whether a / b takes the slow path of a division: the reciprocal, the quotient or a step between would overflow or
/// lose bits to underflow.
inline bool needs_slow_division(float a, float b) {
  int ea = 0, eb = 0;
  if (!std::isfinite(a) || !std::isfinite(b) || b == 0) return true;
  std::frexp(a, &ea), std::frexp(b, &eb);
  return a == 0 ? std::abs(eb) > 125 : std::abs(eb) > 125 || ea - eb > 125 || ea - eb < -125 || ea < -100;
}

/// The most lanes that have the same address.
inline uint8_t most_at_one_address(const uint64_t at[32], uint32_t lanes) {
  uint8_t most = 0;
  for (uint32_t left = lanes; left;) {
    const uint64_t address = at[std::countr_zero(left)];
    uint8_t n = 0;
    for (uint32_t l = left; l; l &= l - 1)
      if (at[std::countr_zero(l)] == address) ++n, left &= ~(1u << std::countr_zero(l));
    most = std::max(most, n);
  }
  return most;
}

}  // namespace roofgen::sass
