// Half and bfloat16 instructions for one lane; see math.h for the rules. No include guard: lanes.inc includes it once
// per host instruction set, after math.h.

FN float half_to_float(u16 h) {
  u32 sign = u32(h & 0x8000u) << 16, body = u32(h & 0x7fffu) << 13, exponent = body & 0x0f800000u;
  u32 normal = body + (112u << 23);
  u32 special = body + (224u << 23);
  u32 subnormal = bits_of(f32_of(body + (113u << 23)) - f32_of(113u << 23));
  u32 r = exponent == 0x0f800000u ? special : exponent == 0 ? subnormal : normal;
  return f32_of(r | sign);
}
FN u16 float_to_half(float x) {
  u32 u = bits_of(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  u32 rounded = (a + ((15u - 127u) << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  u32 subnormal = bits_of(f32_of(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;
  u32 r = a < 0x38800000u ? subnormal : rounded;
  r = a >= 0x47800000u ? 0x7c00u : r;
  return u16(a > 0x7f800000u ? 0x7fffu : (r | sign));
}
FN float bf16_to_float(u16 h) { return f32_of(u32(h) << 16); }
FN u16 float_to_bf16(float x) {
  u32 u = bits_of(x);
  u32 r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return u16((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r);
}
FN u16 float_to_half_rz(float x) {
  u16 n = float_to_half(x);
  bool away = fabs32(half_to_float(n)) > fabs32(x);
  return u16(away ? n - 1 : n);
}
FN u16 float_to_bf16_rz(float x) {
  u32 u = bits_of(x);
  return u16((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : u >> 16);
}

/// The two 16-bit formats, so that one function serves both.
struct Half {
  static FN float load(u16 h) { return half_to_float(h); }
  static FN u16 store(float x) { return float_to_half(x); }
  static constexpr int kDigits = 11, kMinExponent = -14;
};
struct Bf16 {
  static FN float load(u16 h) { return bf16_to_float(h); }
  static FN u16 store(float x) { return float_to_bf16(x); }
  static constexpr int kDigits = 8, kMinExponent = -126;
};
/// Rounds an odd-rounded double to the 16-bit format F: first to F's own quantum, which is exact
/// arithmetic in double, then a conversion that no longer rounds.
template <class F>
FN u16 round_to(double x) {
  u64 u = bits_of(x);
  s64 e = s64((u >> 52) & 0x7ff) - 1023;
  if (e > 200) return F::store(float(x));
  s64 quantum = (e < F::kMinExponent ? F::kMinExponent : e) - (F::kDigits - 1);
  double magic = f64_of(u64(quantum + 52 + 1023) << 52) * 1.5;
  double r = (x + magic) - magic;
  return F::store(r == 0.0 ? copysign32(float(x), 0.0f) : float(r));
}

/// The same in a direction, from the nearest number of the format and its neighbours.
template <class F, Round R>
FN u16 round_to_dir(double x) {
  u16 n = round_to<F>(x);
  double back = double(F::load(n));
  bool low = back<x, high = back> x;
  bool toward_zero = x < 0.0 ? low : high, from_zero = x < 0.0 ? high : low;
  bool step_in = toward_zero && (R == Round::kZero || R == (x < 0.0 ? Round::kUp : Round::kDown));
  bool step_out = from_zero && R == (x < 0.0 ? Round::kDown : Round::kUp);
  return u16(step_in ? n - 1 : step_out ? n + 1 : n);
}
template <class F>
FN u16 hsat(u16 a) {
  return F::store(saturate(F::load(a)));
}

template <class F>
FN u16 hadd(u16 a, u16 b) {
  return F::store(F::load(a) + F::load(b));
}
template <class F>
FN u16 hsub(u16 a, u16 b) {
  return F::store(F::load(a) - F::load(b));
}
template <class F>
FN u16 hmul(u16 a, u16 b) {
  return F::store(F::load(a) * F::load(b));
}
template <class F>
FN u16 hfma(u16 a, u16 b, u16 c) {
  return round_to<F>(fma_odd(F::load(a), F::load(b), F::load(c)));
}
template <class F>
FN u16 hadd_sat(u16 a, u16 b) {
  return hsat<F>(hadd<F>(a, b));
}
template <class F>
FN u16 hsub_sat(u16 a, u16 b) {
  return hsat<F>(hsub<F>(a, b));
}
template <class F>
FN u16 hmul_sat(u16 a, u16 b) {
  return hsat<F>(hmul<F>(a, b));
}
template <class F>
FN u16 hfma_sat(u16 a, u16 b, u16 c) {
  return hsat<F>(hfma<F>(a, b, c));
}
template <class F>
FN u16 hfma_relu(u16 a, u16 b, u16 c) {
  u16 r = hfma<F>(a, b, c);
  return (r & 0x7fff) > F::store(f32_of(0x7f800000u)) ? r : (r >> 15 ? u16(0) : r);
}
template <class F>
FN u16 hmin(u16 a, u16 b) {
  return F::store(fmin(F::load(a), F::load(b)));
}
template <class F>
FN u16 hmax(u16 a, u16 b) {
  return F::store(fmax(F::load(a), F::load(b)));
}
template <class F>
FN u16 hmin_nan(u16 a, u16 b) {
  return F::store(fmin_nan(F::load(a), F::load(b)));
}
template <class F>
FN u16 hmax_nan(u16 a, u16 b) {
  return F::store(fmax_nan(F::load(a), F::load(b)));
}
template <class To, class From>
FN u16 cvt_half_half(u16 a) {
  return To::store(From::load(a));
}
template <class F>
FN u16 hex2(u16 a) {
  return F::store(ex2(F::load(a)));
}
template <class F>
FN u16 htanh(u16 a) {
  return F::store(tanh_approx(F::load(a)));
}
FN u16 hneg(u16 a) { return u16(a ^ 0x8000u); }
FN u16 habs(u16 a) { return u16(a & 0x7fffu); }

template <u16 (*F)(u16)>
FN u32 pair1(u32 a) {
  return u32(F(u16(a))) | u32(F(u16(a >> 16))) << 16;
}
template <u16 (*F)(u16, u16)>
FN u32 pair2(u32 a, u32 b) {
  return u32(F(u16(a), u16(b))) | u32(F(u16(a >> 16), u16(b >> 16))) << 16;
}
template <u16 (*F)(u16, u16, u16)>
FN u32 pair3(u32 a, u32 b, u32 c) {
  return u32(F(u16(a), u16(b), u16(c))) | u32(F(u16(a >> 16), u16(b >> 16), u16(c >> 16))) << 16;
}
