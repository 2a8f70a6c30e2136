// The two 16-bit floating-point formats: conversion, spacing, rounding error.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "roofgen/pipeline.h"

namespace roofgen {

struct Format16 {
  int precision;     ///< significand bits, the hidden one included
  int min_exponent;  ///< exponent of the smallest normal number
};

inline Format16 format_of(DType dtype) { return dtype == DType::kFp16 ? Format16{11, -14} : Format16{8, -126}; }

/// Distance between the neighbours of x in the format (one ulp); subnormal spacing near zero.
inline double spacing(double x, Format16 f) {
  // From the bits of a finite double, because this runs once per compared element.
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff) - 1023;
  const int ulp_exponent = std::max(exponent, f.min_exponent) - f.precision + 1;
  return std::bit_cast<double>(static_cast<uint64_t>(ulp_exponent + 1023) << 52);
}

/// Rounds to nearest even. |x| must be below the largest finite number.
inline double round_to(double x, Format16 f) {
  const double ulp = spacing(x, f);
  return std::nearbyint(x / ulp) * ulp;
}

/// The bits of a value of the format, infinities and NaN included.
inline uint16_t encode16(double x, DType dtype) {
  if (dtype != DType::kFp16) return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16);
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::fabs(x);
  if (!std::isfinite(x)) return static_cast<uint16_t>(sign | (std::isnan(x) ? 0x7e00 : 0x7c00));
  if (a < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(a * 0x1p24));
  const int e = std::ilogb(a);
  return static_cast<uint16_t>(sign | ((e + 15) << 10) | static_cast<uint16_t>((std::ldexp(a, -e) - 1) * 1024));
}

inline float decode16(uint16_t bits, DType dtype) {
  if (dtype != DType::kFp16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int e = (bits >> 10) & 31, m = bits & 1023;
  float a = e == 0 ? std::ldexp(static_cast<float>(m), -24) : std::ldexp(static_cast<float>(1024 + m), e - 25);
  if (e == 31) a = m ? NAN : INFINITY;
  return bits & 0x8000 ? -a : a;
}

/// Largest relative error of rounding a normal number to nearest.
inline double unit_roundoff(Format16 f) { return std::ldexp(1.0, -f.precision); }
/// Root mean square of the absolute error of rounding a subnormal number.
inline double rms_subnormal_error(Format16 f) {
  return std::ldexp(1.0, f.min_exponent - f.precision + 1) / std::sqrt(12.0);
}

}  // namespace roofgen
