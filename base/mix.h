// Random bits as a function of a counter.
#pragma once

#include <cstdint>

namespace roofgen {

/// splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection on 64 bits that passes statistical tests on counters.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace roofgen
