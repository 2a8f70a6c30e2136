// 16-bit floating-point formats to double, for reading device buffers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "roofgen/pipeline.h"

namespace roofgen {

/// Element `index` of an array of `dtype` as double; NaN and infinities are kept.
inline double load_element(const std::byte* base, size_t index, DType dtype) {
  if (dtype == DType::kFp32) {
    float f;
    std::memcpy(&f, base + 4 * index, 4);
    return f;
  }
  uint16_t h;
  std::memcpy(&h, base + 2 * index, 2);
  if (dtype == DType::kBf16) {
    const uint32_t bits = uint32_t{h} << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double value = 0;
  if (exponent == 31) value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else value = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  return h & 0x8000 ? -value : value;
}

}  // namespace roofgen
