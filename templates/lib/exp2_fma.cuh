// 2^x without the special function unit, for kernels that it bounds (the idea is FlashAttention-4's).

/// 2^x for x below 128, with a relative error of 2^-13.5 (kDegree 3) or 2^-18.4 (4); 0 from x = -127 down. A
/// polynomial in the fraction of x, whose whole part is added to the exponent. The coefficients are a minimax fit of
/// the relative error on [0, 1) in which 2^0 is exactly 1.
template <int kDegree>
__device__ __forceinline__ float ex2_fma(float x) {
  static_assert(kDegree == 3 || kDegree == 4, "no coefficients");
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the whole part of x
  x = fmaxf(x, -127.0f);
  const float shifted = __fadd_rd(x, kShift), fraction = x - (shifted - kShift);
  float p;
  if constexpr (kDegree == 3) {
    p = fmaf(fraction, 0.0770670399f, 0.227644995f);
    p = fmaf(fraction, p, 0.695116758f);
  } else {
    p = fmaf(fraction, 0.0134266838f, 0.0522424728f);
    p = fmaf(fraction, p, 0.241280198f);
    p = fmaf(fraction, p, 0.693044841f);
  }
  p = fmaf(fraction, p, 1.0f);
  return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}
