// Conversions for one lane; see math.h for the rules. No include guard: lanes.inc includes it once
// per host instruction set, after math.h.

/// Integer to integer of another width: the low bits, extended by the destination's signedness.
template <class D, class S>
FN D cvt_int(S a) {
  return D(a);
}
template <class D, class S>
FN D cvt_int_sat(S a) {
  constexpr s64 low = D(-1) < D(0) ? -(s64(1) << (sizeof(D) * 8 - 1)) : 0;
  constexpr u64 high = D(-1) < D(0) ? (u64(1) << (sizeof(D) * 8 - 1)) - 1 : low_of_width(sizeof(D) * 8);
  if (S(-1) < S(0) && s64(a) < low) return D(low);
  if (!(S(-1) < S(0) && s64(a) < 0) && u64(a) > high) return D(high);
  return D(a);
}
template <Round R, class T>
FN T round_int(T x) {
  T big = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  bool integral = !(x < big && x > -big);
  T safe = integral ? T(0) : x;
  T t = T(s64(safe));  // toward zero
  T r = t;
  T frac = safe - t;
  if (R == Round::kDown) r = frac < T(0) ? t - T(1) : t;
  if (R == Round::kUp) r = frac > T(0) ? t + T(1) : t;
  if (R == Round::kNearest) {
    bool odd = s64(t) & 1;
    r = frac > T(0.5) || (frac == T(0.5) && odd) ? t + T(1) : r;
    r = frac < T(-0.5) || (frac == T(-0.5) && odd) ? t - T(1) : r;
  }
  r = r == T(0) ? (sign_bit(x) ? T(-0.0) : T(0.0)) : r;
  return integral ? x : r;
}
template <Round R>
FN float cvt_round_f32(float x) {
  return canon(round_int<R>(x));
}
template <Round R>
FN float cvt_round_f32_ftz(float x) {
  return canon(round_int<R>(flush(x)));
}
template <Round R>
FN double cvt_round_f64(double x) {
  return canon(round_int<R>(x));
}
template <class F, Round R>
FN u16 cvt_round_half(u16 a) {
  return F::store(canon(round_int<R>(F::load(a))));
}
/// Float to integer clamps to the destination's range; NaN becomes 0.
template <class D, Round R, class S>
FN D cvt_to_int(S x) {
  S r = round_int<R>(x);
  constexpr S top = S(u64(1) << (sizeof(D) * 8 - 1)) * (D(-1) < D(0) ? S(1) : S(2));
  constexpr S bottom = D(-1) < D(0) ? -top : S(0);
  constexpr D low = D(-1) < D(0) ? D(u64(1) << (sizeof(D) * 8 - 1)) : D(0);
  if (r != r) return D(0);
  if (r >= top) return D(~low);
  if (r <= bottom) return low;
  return D(r);
}
template <class D, Round R>
FN D cvt_f32_int(float x) {
  return cvt_to_int<D, R>(x);
}
template <class D, Round R>
FN D cvt_f32_int_ftz(float x) {
  return cvt_to_int<D, R>(flush(x));
}
template <class D, Round R>
FN D cvt_f64_int(double x) {
  return cvt_to_int<D, R>(x);
}
template <class D, Round R>
FN D cvt_f16_int(u16 x) {
  return cvt_to_int<D, R>(half_to_float(x));
}
template <class D, Round R>
FN D cvt_bf16_int(u16 x) {
  return cvt_to_int<D, R>(bf16_to_float(x));
}
template <class S>
FN float cvt_int_f32(S a) {
  return float(a);
}
template <class S>
FN double cvt_int_f64(S a) {
  return double(a);
}
/// Odd-rounded double of a 64-bit integer, so that the next rounding is the only one.
template <class S>
FN double int_odd(S a) {
  bool negative = S(-1) < S(0) && s64(a) < 0;
  u64 m = negative ? 0 - u64(s64(a)) : u64(a);
  u64 kept = m >> 53 ? (m & ~u64{0x7ff}) | ((m & 0x7ff) ? 0x800 : 0) : m;
  double d = double(kept);
  return negative ? -d : d;
}
template <Round R, class S>
FN float cvt_int_f32_dir(S a) {
  return narrow<R>(int_odd(a));
}
template <class F, class S>
FN u16 cvt_int_half(S a) {
  return round_to<F>(int_odd(a));
}
template <class F, Round R, class S>
FN u16 cvt_int_half_dir(S a) {
  return round_to_dir<F, R>(int_odd(a));
}
template <Round R, class S>
FN double cvt_int_f64_dir(S a) {
  // In two exact parts, whose sum is rounded once.
  bool negative = S(-1) < S(0) && s64(a) < 0;
  double high = (negative ? double(s64(a) >> 32) : double(u64(a) >> 32)) * 4294967296.0;
  return add_mode<R>(high, double(u64(a) & 0xffffffffu));
}
template <class F, Round R>
FN u16 cvt_f32_half_dir(float a) {
  return round_to_dir<F, R>(double(a));
}
template <class F, Round R>
FN u16 cvt_f64_half_dir(double a) {
  return round_to_dir<F, R>(a);
}
FN double cvt_f64_f32(float a) { return canon(double(a)); }
FN double cvt_f64_f32_ftz(float a) { return canon(double(flush(a))); }
template <Round R>
FN float cvt_f32_f64(double a) {
  return canon(narrow<R>(a));
}
template <Round R>
FN float cvt_f32_f64_ftz(double a) {
  return flush(canon(narrow<R>(a)));
}
template <class F>
FN float cvt_half_f32(u16 a) {
  return canon(F::load(a));
}
template <class F>
FN float cvt_half_f32_ftz(u16 a) {
  return flush(canon(F::load(a)));
}
template <class F>
FN double cvt_half_f64(u16 a) {
  return canon(double(F::load(a)));
}
template <class F>
FN u16 cvt_f64_half(double a) {
  return round_to<F>(a);
}
template <u16 (*F)(float)>
FN u16 cvt_f32_half(float a) {
  return F(a);
}
template <u16 (*F)(float)>
FN u16 cvt_f32_half_ftz(float a) {
  return F(flush(a));
}
template <u16 (*F)(float)>
FN u16 cvt_f32_half_relu(float a) {
  return F(a < 0.0f ? 0.0f : a);
}
template <u16 (*F)(float)>
FN u16 cvt_f32_half_sat(float a) {
  return F(saturate(a));
}
/// cvt.rn.bf16x2.f32 d, a, b: a goes to the high half.
template <u16 (*F)(float)>
FN u32 cvt_f32_pair(float a, float b) {
  return u32(F(a)) << 16 | F(b);
}
template <u16 (*F)(float)>
FN u32 cvt_f32_pair_relu(float a, float b) {
  return u32(F(a < 0.0f ? 0.0f : a)) << 16 | F(b < 0.0f ? 0.0f : b);
}
/// .satfinite: the greatest finite number for infinities.
template <u16 (*F)(float), u16 kInfinity>
FN u16 finite(float a) {
  u16 h = F(a);
  return u16(h - ((h & 0x7fffu) == kInfinity));
}
FN float cvt_sat_f32(float a) { return saturate(a); }
FN float cvt_f32_f32_ftz(float a) { return flush(canon(a)); }
/// tf32 keeps 10 mantissa bits: rna rounds half away from zero, rn to even.
FN u32 cvt_rna_tf32(float a) {
  u32 u = bits_of(a);
  return (u & 0x7f800000u) == 0x7f800000u ? bits_of(canon(a)) : (u + 0x1000u) & ~0x1fffu;
}
FN u32 cvt_rn_tf32(float a) {
  u32 u = bits_of(a);
  return (u & 0x7f800000u) == 0x7f800000u ? bits_of(canon(a)) : (u + 0xfffu + (u >> 13 & 1)) & ~0x1fffu;
}

/// The 8-bit formats: M mantissa bits, exponent bias B. `.satfinite`: what lies beyond Largest becomes it; NaN is 0x7f.
template <int M, int B, u32 Largest>
FN u32 float_to_fp8(float x) {
  u32 sign = bits_of(x) >> 24 & 0x80u;
  float a = fabs32(x), top = f32_of(Largest);
  u32 u = bits_of(a < top ? a : top);
  u32 normal = ((u + ((1u << (22 - M)) - 1) + (u >> (23 - M) & 1u)) >> (23 - M)) - ((127u - B) << M);
  // In this sum the last place of the float is that of the format's subnormal numbers.
  float magic = f32_of((127u + 24 - B - M) << 23);
  u32 subnormal = bits_of(f32_of(u) + magic) - bits_of(magic);
  return x != x ? 0x7fu : sign | (u < (128u - B) << 23 ? subnormal : normal);
}
struct E4m3 {
  static FN float load(u32 b) {
    u32 body = (b & 0x7fu) << 20;
    u32 subnormal = bits_of(f32_of(body + (121u << 23)) - f32_of(121u << 23));
    u32 r = body == 0x07f00000u ? 0x7fffffffu : body < 0x00800000u ? subnormal : body + (120u << 23);
    return f32_of(r | (b & 0x80u) << 24);
  }
  static FN u32 store(float x) { return float_to_fp8<3, 7, 0x43e00000u>(x); }  // 448
};
struct E5m2 {
  static FN float load(u32 b) { return half_to_float(u16(b << 8)); }
  static FN u32 store(float x) { return float_to_fp8<2, 15, 0x47600000u>(x); }  // 57344
};
/// cvt.rn.satfinite.e4m3x2.f32 d, a, b: a goes to the upper byte.
template <class F>
FN u16 cvt_f32_pair8(float a, float b) {
  return u16(F::store(a) << 8 | F::store(b));
}
template <class F>
FN u16 cvt_f32_pair8_relu(float a, float b) {
  return cvt_f32_pair8<F>(a < 0.0f ? 0.0f : a, b < 0.0f ? 0.0f : b);
}
template <class F>
FN u16 cvt_half_pair8(u32 a) {
  return cvt_f32_pair8<F>(half_to_float(u16(a >> 16)), half_to_float(u16(a)));
}
template <class F>
FN u32 cvt_pair8_half(u16 a) {
  return u32(float_to_half(F::load(a >> 8))) << 16 | float_to_half(F::load(a & 0xffu));
}

/// cvt.pack.sat: b in the low part, a above it; of 8-bit results c fills the upper half.
template <class D>
FN u32 cvt_pack_16(s32 a, s32 b) {
  return u32(u16(cvt_int_sat<D, s32>(a))) << 16 | u16(cvt_int_sat<D, s32>(b));
}
template <class D>
FN u32 cvt_pack_8(s32 a, s32 b, u32 c) {
  return c << 16 | u32(u8(cvt_int_sat<D, s32>(a))) << 8 | u8(cvt_int_sat<D, s32>(b));
}
