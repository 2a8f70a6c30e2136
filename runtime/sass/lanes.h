// A 32-bit value in each lane of a warp, and the lanes in which it is known.
#pragma once

#include <cstdint>

namespace roofgen::sass {

struct alignas(64) Lanes {
  uint32_t v[32];
  uint32_t known;
  uint8_t axes;  ///< of the grid on which the value may depend: bit 0 x, 1 y, 2 z
  void fill(uint32_t value) {
    for (uint32_t& x : v) x = value;
    known = ~0u;
    axes = 0;
  }
};

/// The lanes of `mask` take the new value.
inline void merge(Lanes& to, const Lanes& value, uint32_t mask) {
  if (mask == ~0u) {
    to = value;
    return;
  }
  for (unsigned lane = 0; lane < 32; ++lane) to.v[lane] = mask >> lane & 1 ? value.v[lane] : to.v[lane];
  to.known = (to.known & ~mask) | (value.known & mask);
  to.axes |= value.axes;
}

inline void add_lanes(Lanes& to, const Lanes& other) {
  for (unsigned lane = 0; lane < 32; ++lane) to.v[lane] += other.v[lane];
  to.known &= other.known;
  to.axes |= other.axes;
}

}  // namespace roofgen::sass
