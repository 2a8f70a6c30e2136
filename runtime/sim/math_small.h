// Pairs of fp32 numbers in 64 bits, minima of three, and formats of 4 and 6 bits and of scales (PTX ISA, "Alternate
// Floating-Point Data Formats"). Included by lanes.inc.

template <float (*F)(float, float)>
FN u64 each2(u64 a, u64 b) {
  return u64(bits_of(F(f32_of(u32(a >> 32)), f32_of(u32(b >> 32))))) << 32 | bits_of(F(f32_of(u32(a)), f32_of(u32(b))));
}
template <float (*F)(float, float, float)>
FN u64 each3(u64 a, u64 b, u64 c) {
  return u64(bits_of(F(f32_of(u32(a >> 32)), f32_of(u32(b >> 32)), f32_of(u32(c >> 32))))) << 32 |
         bits_of(F(f32_of(u32(a)), f32_of(u32(b)), f32_of(u32(c))));
}
template <float (*F)(float, float)>
FN float of_three(float a, float b, float c) {
  return F(F(a, b), c);
}

/// Of halves and fp32.
template <class F>
FN float add_mixed(u16 a, float c) {
  return fadd(F::load(a), c);
}
template <class F>
FN float sub_mixed(u16 a, float c) {
  return fsub(F::load(a), c);
}
template <class F>
FN float fma_mixed(u16 a, u16 b, float c) {
  return ffma(F::load(a), F::load(b), c);
}

/// Numbers without infinities and NaNs: E bits of exponent, M of mantissa. What is too large becomes the largest one,
/// and so does NaN (PTX ISA, cvt, ".satfinite").
template <int E, int M, u32 Largest>
struct SmallFloat {
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr u32 kBody = (1u << (E + M)) - 1, kBits = E + M + 1;
  static FN float load(u32 b) {
    u32 body = b & kBody, sign = (b >> (E + M) & 1) << 31;
    float small = float(s32(body)) * f32_of(u32(128 - kBias - M) << 23);
    return f32_of(sign | (body < (1u << M) ? bits_of(small) : (body << (23 - M)) + (u32(127 - kBias) << 23)));
  }
  static FN u32 store(float x) {
    if (x != x) return kBody;
    u32 byte = float_to_fp8<M, kBias, Largest>(x);
    return (byte >> 7) << (E + M) | (byte & kBody);
  }
};
using E2m1 = SmallFloat<2, 1, 0x40c00000u>;  // 6
using E2m3 = SmallFloat<2, 3, 0x40f00000u>;  // 7.5
using E3m2 = SmallFloat<3, 2, 0x41e00000u>;  // 28

/// a goes to the upper part: half of a byte of numbers of 4 bits, a byte of others.
template <class F, class To>
FN To cvt_f32_small(float a, float b) {
  constexpr int kShift = F::kBits == 4 ? 4 : 8;
  return To(F::store(a) << kShift | F::store(b));
}
template <class F, class To>
FN To cvt_f32_small_relu(float a, float b) {
  return cvt_f32_small<F, To>(a < 0.0f ? 0.0f : a, b < 0.0f ? 0.0f : b);
}
template <class F, class From>
FN u32 cvt_small_half(From a) {
  constexpr int kShift = F::kBits == 4 ? 4 : 8;
  return u32(float_to_half(F::load(u32(a) >> kShift))) << 16 | float_to_half(F::load(u32(a)));
}
template <class F, class From>
FN u32 cvt_small_half_relu(From a) {
  u32 pair = cvt_small_half<F, From>(a);
  return (pair & 0x8000u ? 0 : pair & 0xffffu) | (pair & 0x80000000u ? 0 : pair & 0xffff0000u);
}

/// ue8m0: a power of two by its biased exponent; 255 is NaN.
template <bool kUp, bool kFinite>
FN u32 to_scale(float x) {
  u32 u = bits_of(x) & 0x7fffffffu, exponent = u >> 23, mantissa = u & 0x7fffffu;
  if (u > 0x7f800000u) return 255;
  // 2^-127, the smallest, is half of the smallest normal number.
  u32 code = exponent ? exponent + u32(kUp && mantissa) : u32(kUp && mantissa > 0x400000u);
  return code >= 255 ? (kFinite ? 254 : 255) : code;
}
template <bool kUp, bool kFinite>
FN u16 cvt_f32_scale(float a, float b) {
  return u16(to_scale<kUp, kFinite>(a) << 8 | to_scale<kUp, kFinite>(b));
}
template <bool kUp, bool kFinite>
FN u16 cvt_bf16_scale(u32 a) {
  return cvt_f32_scale<kUp, kFinite>(f32_of(a & 0xffff0000u), f32_of(a << 16));
}
FN u32 cvt_scale_bf16(u16 a) {
  u32 high = u32(a) >> 8, low = a & 0xffu;
  return (high == 255 ? 0x7fffu : high ? high << 7 : 0x40u) << 16 | (low == 255 ? 0x7fffu : low ? low << 7 : 0x40u);
}

FN u32 pack_b32_b8(u16 a, u16 b, u16 c, u16 d) {
  return (a & 255u) | (b & 255u) << 8 | (c & 255u) << 16 | u32(d & 255u) << 24;
}
FN u16 pack_b16_b8(u16 a, u16 b) { return u16((a & 255u) | (b & 255u) << 8); }
FN u16 unpack_b32_b8(u32 a, u32 i) { return u16(a >> 8 * i & 255u); }
FN u16 unpack_b16_b8(u16 a, u32 i) { return u16(a >> 8 * i & 255u); }
