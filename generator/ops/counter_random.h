// Random numbers that are pure functions of a counter, for the contents of inputs.
#pragma once

#include <array>
#include <cstdint>

namespace roofgen {

/// splitmix64's finaliser: a bijection on 64 bits that passes statistical tests on counters.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline constexpr int kQuantileBits = 12;
inline constexpr int kQuantiles = 1 << kQuantileBits;

/// Quantiles of N(0,1) in equal steps of probability: a uniform index is a normal number.
const std::array<double, kQuantiles>& normal_quantiles();

}  // namespace roofgen
