// What each lane-wise instruction computes for one lane: pure functions of the operand values, named
// after the PTX instruction. They define the results bit for bit on every host, so: no library
// calls whose rounding differs, fused operations only where PTX fuses, NaN results made canonical.
//
// Included once per host instruction set inside that build's own namespace (lanes.inc), hence no
// include guard and no standard headers here: lanes.inc provides <cstdint> and the bit casts.

// ---- floating-point building blocks --------------------------------------------------------------

FN float f32_of(u32 x) { return bits_to<float>(x); }
FN u32 bits_of(float x) { return bits_to<u32>(x); }
FN double f64_of(u64 x) { return bits_to<double>(x); }
FN u64 bits_of(double x) { return bits_to<u64>(x); }

FN float canon(float x) { return x != x ? f32_of(0x7fffffffu) : x; }
FN double canon(double x) { return x != x ? f64_of(0x7ff8000000000000ull) : x; }
/// Subnormals become zero of the same sign (`.ftz`).
FN float flush(float x) {
  u32 u = bits_of(x);
  return f32_of((u & 0x7f800000u) == 0 ? u & 0x80000000u : u);
}
FN double flush(double x) { return x; }
FN float saturate(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // NaN becomes +0

/// a*b+c for floats with the rounding deferred: an odd-rounded double, from which one rounding to
/// float or narrower is correct (Boldo and Melquiond). The product of two floats is exact in double.
FN double fma_odd(float a, float b, float c) {
  double p = double(a) * double(b), x = double(c);
  double s = p + x;
  double t = s - p;
  double error = (p - (s - t)) + (x - t);
  u64 u = bits_of(s);
  bool inexact = error != 0.0 && (u & 1) == 0 && s == s && (u << 1) < 0xffe0000000000000ull;
  // Move to the odd neighbour on the side of the error.
  u64 toward = ((error > 0.0) == (s > 0.0)) ? u + 1 : u - 1;
  return f64_of(inexact ? toward : u);
}
FN float fma_single(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return float(fma_odd(a, b, c));
#endif
}
FN double fma_single(double a, double b, double c) { return __builtin_fma(a, b, c); }

enum class Round { kNearest, kZero, kDown, kUp };

/// Rounds an odd-rounded or exact double to float in a given direction.
template <Round R>
FN float narrow(double x) {
  float n = float(x);
  if (R == Round::kNearest || x != x) return n;
  double back = double(n);
  u32 u = bits_of(n);
  bool negative = x < 0.0;
  bool too_high = back > x, too_low = back < x;
  bool step_down = too_high && (R == Round::kDown || (R == Round::kZero && !negative));
  bool step_up = too_low && (R == Round::kUp || (R == Round::kZero && negative));
  u32 below = (u << 1) == 0 ? 0x80000001u : (u >> 31 ? u + 1 : u - 1);
  u32 above = (u << 1) == 0 ? 0x00000001u : (u >> 31 ? u - 1 : u + 1);
  return f32_of(step_down ? below : step_up ? above : u);
}

// ---- float, double -------------------------------------------------------------------------------

template <class T> FN T fadd(T a, T b) { return canon(a + b); }
template <class T> FN T fsub(T a, T b) { return canon(a - b); }
template <class T> FN T fmul(T a, T b) { return canon(a * b); }
template <class T> FN T fdiv(T a, T b) { return canon(a / b); }
template <class T> FN T ffma(T a, T b, T c) { return canon(fma_single(a, b, c)); }
FN float fadd_ftz(float a, float b) { return flush(fadd(flush(a), flush(b))); }
FN float fsub_ftz(float a, float b) { return flush(fsub(flush(a), flush(b))); }
FN float fmul_ftz(float a, float b) { return flush(fmul(flush(a), flush(b))); }
FN float fdiv_ftz(float a, float b) { return flush(fdiv(flush(a), flush(b))); }
FN float ffma_ftz(float a, float b, float c) { return flush(ffma(flush(a), flush(b), flush(c))); }
template <float (*F)(float, float)> FN float sat2(float a, float b) { return saturate(F(a, b)); }
template <float (*F)(float, float, float)> FN float sat3(float a, float b, float c) { return saturate(F(a, b, c)); }
template <Round R> FN float fadd_dir(float a, float b) { return canon(narrow<R>(fma_odd(a, 1.0f, b))); }
template <Round R> FN float fsub_dir(float a, float b) { return canon(narrow<R>(fma_odd(a, 1.0f, -b))); }
template <Round R> FN float fmul_dir(float a, float b) { return canon(narrow<R>(double(a) * double(b))); }
template <Round R> FN float ffma_dir(float a, float b, float c) { return canon(narrow<R>(fma_odd(a, b, c))); }
template <float (*F)(float, float)> FN float ftz2(float a, float b) { return flush(F(flush(a), flush(b))); }
template <float (*F)(float, float, float)> FN float ftz3(float a, float b, float c) {
  return flush(F(flush(a), flush(b), flush(c)));
}
FN float fneg(float a) { return f32_of(bits_of(a) ^ 0x80000000u); }
FN float fabs32(float a) { return f32_of(bits_of(a) & 0x7fffffffu); }
FN float fneg_ftz(float a) { return fneg(flush(a)); }
FN float fabs_ftz(float a) { return fabs32(flush(a)); }
FN double fneg64(double a) { return f64_of(bits_of(a) ^ (u64{1} << 63)); }
FN double fabs64(double a) { return f64_of(bits_of(a) & ~(u64{1} << 63)); }

FN bool sign_bit(float a) { return bits_of(a) >> 31; }
FN bool sign_bit(double a) { return bits_of(a) >> 63; }
/// The operand that is a number wins over NaN; -0 is below +0.
template <class T> FN T fmin(T a, T b) {
  T lower = a < b ? a : (b < a ? b : (sign_bit(a) ? a : b));
  return canon(a != a ? b : (b != b ? a : lower));
}
template <class T> FN T fmax(T a, T b) {
  T upper = a > b ? a : (b > a ? b : (sign_bit(a) ? b : a));
  return canon(a != a ? b : (b != b ? a : upper));
}
template <class T> FN T fmin_nan(T a, T b) { return canon(a != a ? a : b != b ? b : fmin(a, b)); }
template <class T> FN T fmax_nan(T a, T b) { return canon(a != a ? a : b != b ? b : fmax(a, b)); }
FN float fmin_ftz(float a, float b) { return fmin(flush(a), flush(b)); }
FN float fmax_ftz(float a, float b) { return fmax(flush(a), flush(b)); }
FN float fmin_nan_ftz(float a, float b) { return fmin_nan(flush(a), flush(b)); }
FN float fmax_nan_ftz(float a, float b) { return fmax_nan(flush(a), flush(b)); }
FN float copysign32(float a, float b) { return f32_of((bits_of(a) & 0x80000000u) | (bits_of(b) & 0x7fffffffu)); }
FN double copysign64(double a, double b) {
  return f64_of((bits_of(a) & (u64{1} << 63)) | (bits_of(b) & ~(u64{1} << 63)));
}

template <class T> FN T frcp(T a) { return canon(T(1) / a); }
FN float frcp_ftz(float a) { return flush(frcp(flush(a))); }
FN float fsqrt(float a) { return canon(__builtin_sqrtf(a)); }
FN double fsqrt64(double a) { return canon(__builtin_sqrt(a)); }
FN float fsqrt_ftz(float a) { return fsqrt(flush(a)); }
FN float frsqrt(float a) { return canon(float(1.0 / __builtin_sqrt(double(a)))); }
FN float frsqrt_ftz(float a) { return frsqrt(flush(a)); }
FN double frsqrt64(double a) { return canon(1.0 / __builtin_sqrt(a)); }

/// Nearest integer, ties to even, for |x| < 2^22; adding 1.5*2^23 leaves no bits for a fraction.
FN float nearest_small(float x) { return (x + 12582912.0f) - 12582912.0f; }
FN double nearest_small(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

/// 2^x. The polynomial is the Taylor series of exp(f ln 2) to degree 7 on [-1/2, 1/2]: truncation
/// below 2^-27, rounding about one ulp. PTX allows 2 ulp (2^-22 relative in older ISA texts).
FN float ex2_full(float x) {
  float clamped = x > 129.0f ? 129.0f : (x < -160.0f ? -160.0f : x);
  float n = nearest_small(clamped);
  float f = clamped - n;
  float p = 1.5252734e-5f;
  p = p * f + 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  // Scale in two steps so that subnormal results round once.
  s32 e = s32(n), half = e >> 1;
  float r = p * f32_of(u32(half + 127) << 23) * f32_of(u32(e - half + 127) << 23);
  return x != x ? f32_of(0x7fffffffu) : r;
}
FN float ex2(float x) { return ex2_full(x); }
FN float ex2_ftz(float x) { return flush(ex2_full(flush(x))); }

/// 2^x in double for |x| < 1000, error below 2^-45: the base of tanh.
FN double exp2_double(double x) {
  double n = nearest_small(x);
  double f = (x - n) * 0.6931471805599453;
  double p = 1.0;
  for (int k = 13; k >= 1; --k) p = p * f / double(k) + 1.0;
  return p * f64_of(u64(s64(n) + 1023) << 52);
}
FN float tanh_approx(float x) {
  double a = double(fabs32(x));
  a = a > 20.0 ? 20.0 : a;
  double e = exp2_double(a * -2.8853900817779268);
  float r = float((1.0 - e) / (1.0 + e));
  return x != x ? canon(x) : copysign32(x, r);
}

/// log2(x) through s = (m-1)/(m+1), m in [sqrt(1/2), sqrt(2)): the odd series in s to s^13.
FN float lg2(float x) {
  double d = double(x);
  u64 u = bits_of(d);
  s64 e = s64((u >> 52) & 0x7ff) - 1023;
  double m = f64_of((u & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  bool high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  double exponent = double(e + (high ? 1 : 0));
  double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  float r = float(exponent + p * s * 2.8853900817779268);
  r = x == 0.0f ? f32_of(0xff800000u) : r;
  r = x < 0.0f ? f32_of(0x7fffffffu) : r;
  r = bits_of(x) == 0x7f800000u ? x : r;
  return x != x ? f32_of(0x7fffffffu) : r;
}
FN float lg2_ftz(float x) { return lg2(flush(x)); }

/// sin(x + quarter*pi/2): reduction by pi/2 in two parts, then Taylor series on [-pi/4, pi/4].
template <int Quarter>
FN float sine(float x) {
  double d = double(x);
  d = d > 1e15 ? 1e15 : (d < -1e15 ? -1e15 : d);
  double n = nearest_small(d * 0.6366197723675814);
  double r = (d - n * 1.5707963267948966) - n * 6.123233995736766e-17;
  s64 quadrant = (s64(n) + Quarter) & 3;
  double z = r * r;
  double s = r * (1.0 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 - z / 39916800)))));
  double c = 1.0 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z / 3628800))));
  double v = quadrant & 1 ? c : s;
  v = quadrant & 2 ? -v : v;
  bool bad = (bits_of(x) & 0x7f800000u) == 0x7f800000u;
  return bad ? f32_of(0x7fffffffu) : float(v);
}
FN float sin_approx(float x) { return sine<0>(x); }
FN float cos_approx(float x) { return sine<1>(x); }
FN float sin_ftz(float x) { return flush(sine<0>(flush(x))); }
FN float cos_ftz(float x) { return sine<1>(flush(x)); }

// ---- half and bfloat16 -----------------------------------------------------------------------------

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

template <class F> FN u16 hadd(u16 a, u16 b) { return F::store(F::load(a) + F::load(b)); }
template <class F> FN u16 hsub(u16 a, u16 b) { return F::store(F::load(a) - F::load(b)); }
template <class F> FN u16 hmul(u16 a, u16 b) { return F::store(F::load(a) * F::load(b)); }
template <class F> FN u16 hfma(u16 a, u16 b, u16 c) { return round_to<F>(fma_odd(F::load(a), F::load(b), F::load(c))); }
template <class F> FN u16 hfma_relu(u16 a, u16 b, u16 c) {
  u16 r = hfma<F>(a, b, c);
  return (r & 0x7fff) > F::store(f32_of(0x7f800000u)) ? r : (r >> 15 ? u16(0) : r);
}
template <class F> FN u16 hmin(u16 a, u16 b) { return F::store(fmin(F::load(a), F::load(b))); }
template <class F> FN u16 hmax(u16 a, u16 b) { return F::store(fmax(F::load(a), F::load(b))); }
template <class F> FN u16 hmin_nan(u16 a, u16 b) { return F::store(fmin_nan(F::load(a), F::load(b))); }
template <class F> FN u16 hmax_nan(u16 a, u16 b) { return F::store(fmax_nan(F::load(a), F::load(b))); }
template <class F> FN u16 hex2(u16 a) { return F::store(ex2(F::load(a))); }
template <class F> FN u16 htanh(u16 a) { return F::store(tanh_approx(F::load(a))); }
FN u16 hneg(u16 a) { return u16(a ^ 0x8000u); }
FN u16 habs(u16 a) { return u16(a & 0x7fffu); }

template <u16 (*F)(u16)> FN u32 pair1(u32 a) { return u32(F(u16(a))) | u32(F(u16(a >> 16))) << 16; }
template <u16 (*F)(u16, u16)> FN u32 pair2(u32 a, u32 b) {
  return u32(F(u16(a), u16(b))) | u32(F(u16(a >> 16), u16(b >> 16))) << 16;
}
template <u16 (*F)(u16, u16, u16)> FN u32 pair3(u32 a, u32 b, u32 c) {
  return u32(F(u16(a), u16(b), u16(c))) | u32(F(u16(a >> 16), u16(b >> 16), u16(c >> 16))) << 16;
}

// ---- integers --------------------------------------------------------------------------------------
// Signed arithmetic is done on the unsigned type, where it wraps as PTX says.

template <class T> FN T iadd(T a, T b) { return T(a + b); }
template <class T> FN T isub(T a, T b) { return T(a - b); }
template <class T> FN T imul(T a, T b) { return T(u64(a) * u64(b)); }
template <class T> FN T imad(T a, T b, T c) { return T(u64(a) * u64(b) + u64(c)); }
FN s32 add_sat(s32 a, s32 b) {
  s64 r = s64(a) + b;
  return s32(r > 2147483647 ? 2147483647 : r < -2147483648ll ? -2147483648ll : r);
}
FN s32 sub_sat(s32 a, s32 b) {
  s64 r = s64(a) - b;
  return s32(r > 2147483647 ? 2147483647 : r < -2147483648ll ? -2147483648ll : r);
}
template <class W, class T> FN W mul_wide(T a, T b) { return W(u64(s64(a)) * u64(s64(b))); }
template <class W, class T> FN W mad_wide(T a, T b, W c) { return W(u64(s64(a)) * u64(s64(b)) + u64(c)); }
FN u32 mul_hi_u32(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
FN u32 mul_hi_s32(s32 a, s32 b) { return u32(u64(s64(a) * b) >> 32); }
FN u16 mul_hi_u16(u16 a, u16 b) { return u16(u32(a) * b >> 16); }
FN u16 mul_hi_s16(s16 a, s16 b) { return u16(u32(s32(a) * b) >> 16); }
FN u64 mul_hi_u64(u64 a, u64 b) {
  u64 al = u32(a), ah = a >> 32, bl = u32(b), bh = b >> 32;
  u64 mid = ah * bl + (al * bl >> 32), mid2 = al * bh + u32(mid);
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}
FN u64 mul_hi_s64(u64 a, u64 b) { return mul_hi_u64(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0); }
FN u32 mad_hi_u32(u32 a, u32 b, u32 c) { return mul_hi_u32(a, b) + c; }
FN u32 mad_hi_s32(s32 a, s32 b, u32 c) { return mul_hi_s32(a, b) + c; }
FN u64 mad_hi_u64(u64 a, u64 b, u64 c) { return mul_hi_u64(a, b) + c; }
FN u32 mul24_u32(u32 a, u32 b) { return u32(u64(a & 0xffffffu) * (b & 0xffffffu)); }
FN u32 mul24_s32(s32 a, s32 b) { return u32(s64(s32(u32(a) << 8) >> 8) * (s32(u32(b) << 8) >> 8)); }
/// Division by zero is undefined in PTX; GPUs return all ones, and so do we.
template <class T> FN T udiv(T a, T b) { return b == 0 ? T(~T{0}) : T(a / b); }
template <class T> FN T urem(T a, T b) { return b == 0 ? a : T(a % b); }
template <class T> FN T sdiv(T a, T b) { return b == 0 ? T(-1) : b == -1 ? T(0 - u64(s64(a))) : T(a / b); }
template <class T> FN T srem(T a, T b) { return b == 0 ? a : b == -1 ? T(0) : T(a % b); }
template <class T> FN T imin(T a, T b) { return a < b ? a : b; }
template <class T> FN T imax(T a, T b) { return a > b ? a : b; }
template <class T> FN T ineg(T a) { return T(0 - u64(s64(a))); }
template <class T> FN T iabs(T a) { return a < 0 ? T(0 - u64(s64(a))) : a; }
template <class T> FN T band(T a, T b) { return T(a & b); }
template <class T> FN T bor(T a, T b) { return T(a | b); }
template <class T> FN T bxor(T a, T b) { return T(a ^ b); }
template <class T> FN T bnot(T a) { return T(~a); }
template <class T> FN T cnot(T a) { return a == 0; }
FN bool pand(bool a, bool b) { return a & b; }
FN bool por(bool a, bool b) { return a | b; }
FN bool pxor(bool a, bool b) { return a ^ b; }
FN bool pnot(bool a) { return !a; }
template <class T> FN T shl(T a, u32 n) { return n >= sizeof(T) * 8 ? T(0) : T(u64(a) << (n & 63)); }
template <class T> FN T shr_u(T a, u32 n) { return n >= sizeof(T) * 8 ? T(0) : T(a >> (n & 63)); }
template <class T> FN T shr_s(T a, u32 n) { return T(a >> (n >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : n)); }
FN u32 shf_l_wrap(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) << (n & 31) >> 32); }
FN u32 shf_r_wrap(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) >> (n & 31)); }
FN u32 shf_l_clamp(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) << (n > 32 ? 32 : n) >> 32); }
FN u32 shf_r_clamp(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) >> (n > 32 ? 32 : n)); }
FN u32 sad_u32(u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }
FN u32 sad_s32(s32 a, s32 b, u32 c) { return c + (a < b ? u32(b) - u32(a) : u32(a) - u32(b)); }
FN u32 popc32(u32 x) {
  x = x - ((x >> 1) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
FN u32 popc64(u64 x) { return popc32(u32(x)) + popc32(u32(x >> 32)); }
FN u32 clz32(u32 x) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return 32 - popc32(x);
}
FN u32 clz64(u64 x) { return x >> 32 ? clz32(u32(x >> 32)) : 32 + clz32(u32(x)); }
FN u32 brev32(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}
FN u64 brev64(u64 x) { return u64(brev32(u32(x))) << 32 | brev32(u32(x >> 32)); }
FN u32 bfind_u32(u32 x) { return 31 - clz32(x); }  // -1 when nothing is found
FN u32 bfind_s32(s32 x) { return bfind_u32(u32(x < 0 ? ~x : x)); }
FN u32 bfind_u64(u64 x) { return 63 - clz64(x); }
FN u32 bfind_s64(s64 x) { return bfind_u64(u64(x < 0 ? ~x : x)); }
FN u32 bfind_shift_u32(u32 x) { return x ? clz32(x) : ~0u; }
FN u32 bfind_shift_s32(s32 x) { return bfind_shift_u32(u32(x < 0 ? ~x : x)); }
FN u64 low_bits(u32 n) { return n >= 64 ? ~u64{0} : (u64{1} << n) - 1; }
/// Bit field extract: start b, length c, both 8 bits; a field past the top reads as zero or, signed,
/// as the sign bit of the field's highest existing bit.
FN u64 bfe_u(u64 a, u32 b, u32 c, u32 width) {
  b &= 255;
  c &= 255;
  return b >= width ? 0 : (a >> b) & low_bits(c);
}
FN u64 bfe_s(u64 a, u32 b, u32 c, u32 width) {
  b &= 255;
  c &= 255;
  if (c == 0) return 0;
  u32 top = b + c - 1 < width - 1 ? b + c - 1 : width - 1;
  u64 sign = (a >> top & 1) ? ~u64{0} : 0;
  u64 field = b >= width ? 0 : a >> b;
  u32 have = b >= width ? 0 : (c < width - b ? c : width - b);
  return (field & low_bits(have)) | (sign & ~low_bits(have));
}
FN u32 bfe_u32(u32 a, u32 b, u32 c) { return u32(bfe_u(a, b, c, 32)); }
FN u32 bfe_s32(u32 a, u32 b, u32 c) { return u32(bfe_s(a, b, c, 32)); }
FN u64 bfe_u64(u64 a, u32 b, u32 c) { return bfe_u(a, b, c, 64); }
FN u64 bfe_s64(u64 a, u32 b, u32 c) { return bfe_s(a, b, c, 64); }
FN u64 bfi_any(u64 a, u64 b, u32 at, u32 n, u32 width) {
  at &= 255;
  n &= 255;
  u64 field = at >= width ? 0 : low_bits(n) << at;
  return (b & ~field) | (at >= width ? 0 : (a << at) & field);
}
FN u32 bfi32(u32 a, u32 b, u32 at, u32 n) { return u32(bfi_any(a, b, at, n, 32)); }
FN u64 bfi64(u64 a, u64 b, u32 at, u32 n) { return bfi_any(a, b, at, n, 64); }
FN u32 bmsk_clamp(u32 at, u32 n) {
  u64 end = u64(at) + n;
  return at >= 32 ? 0 : u32(low_bits(u32(end > 32 ? 32 : end)) & ~low_bits(at));
}
FN u32 bmsk_wrap(u32 at, u32 n) { return u32(low_bits(n & 31) << (at & 31)); }
FN u32 prmt(u32 a, u32 b, u32 selector) {
  u64 bytes = u64(b) << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; ++i) {
    u32 pick = selector >> (4 * i) & 15;
    u32 byte = u32(bytes >> (8 * (pick & 7))) & 255;
    u32 sign = byte & 128 ? 255 : 0;
    r |= (pick & 8 ? sign : byte) << (8 * i);
  }
  return r;
}
template <int Mode> FN u32 prmt_mode(u32 a, u32 b, u32 c) {
  c &= 3;
  u32 selector = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 pick = Mode == 0 ? i + c                          // f4e
               : Mode == 1 ? (8 + c - i) & 7              // b4e
               : Mode == 2 ? c                            // rc8
               : Mode == 3 ? (i > c ? i : c)              // ecl
               : Mode == 4 ? (i < c ? i : c)              // ecr
                           : (c & 1) * 2 + (i & 1);       // rc16
    selector |= pick << (4 * i);
  }
  return prmt(a, b, selector);
}
FN u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (u32 i = 0; i < 8; ++i)
    r |= (table >> i & 1 ? ~0u : 0u) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
template <class A, class B> FN u32 dp4a(u32 a, u32 b, u32 c) {
  u32 r = c;
  for (int i = 0; i < 4; ++i) r += u32(s32(A(a >> (8 * i))) * s32(B(b >> (8 * i))));
  return r;
}

template <class T> FN T mov(T a) { return a; }
FN u32 pack_b32_b16(u16 lo, u16 hi) { return lo | u32(hi) << 16; }
FN u64 pack_b64_b32(u32 lo, u32 hi) { return lo | u64(hi) << 32; }
FN u64 pack_b64_b16(u16 a, u16 b, u16 c, u16 d) { return a | u64(b) << 16 | u64(c) << 32 | u64(d) << 48; }
FN u16 unpack_b32_b16(u32 a, u32 part) { return u16(a >> (16 * (part & 1))); }
FN u32 unpack_b64_b32(u64 a, u32 part) { return u32(a >> (32 * (part & 1))); }
FN u16 unpack_b64_b16(u64 a, u32 part) { return u16(a >> (16 * (part & 3))); }
template <class T> FN T select(T a, T b, bool p) { return p ? a : b; }
template <class T> FN T slct_s(T a, T b, s32 c) { return c >= 0 ? a : b; }
template <class T> FN T slct_f(T a, T b, float c) { return c >= 0.0f ? a : b; }

// ---- comparisons -----------------------------------------------------------------------------------

template <class T> FN bool eq(T a, T b) { return a == b; }
template <class T> FN bool ne(T a, T b) { return a != b; }
template <class T> FN bool lt(T a, T b) { return a < b; }
template <class T> FN bool le(T a, T b) { return a <= b; }
template <class T> FN bool gt(T a, T b) { return a > b; }
template <class T> FN bool ge(T a, T b) { return a >= b; }
// Floating point: the ordered six above but for `ne`, then the unordered ones.
template <class T> FN bool fne(T a, T b) { return (a < b) | (a > b); }
template <class T> FN bool equ(T a, T b) { return !((a < b) | (a > b)); }
template <class T> FN bool neu(T a, T b) { return !(a == b); }
template <class T> FN bool ltu(T a, T b) { return !(a >= b); }
template <class T> FN bool leu(T a, T b) { return !(a > b); }
template <class T> FN bool gtu(T a, T b) { return !(a <= b); }
template <class T> FN bool geu(T a, T b) { return !(a < b); }
template <class T> FN bool num(T a, T b) { return (a == a) & (b == b); }
template <class T> FN bool nan(T a, T b) { return (a != a) | (b != b); }
template <bool (*F)(float, float)> FN bool cmp_ftz(float a, float b) { return F(flush(a), flush(b)); }
template <class F, bool (*C)(float, float)> FN bool cmp_half(u16 a, u16 b) { return C(F::load(a), F::load(b)); }
template <class T, bool (*C)(T, T)> FN u32 set_mask(T a, T b) { return C(a, b) ? ~0u : 0u; }
template <class T, bool (*C)(T, T)> FN float set_one(T a, T b) { return C(a, b) ? 1.0f : 0.0f; }
template <class F, bool (*C)(float, float)> FN u32 set_mask_pair(u32 a, u32 b) {
  return (cmp_half<F, C>(u16(a), u16(b)) ? 0xffffu : 0) | (cmp_half<F, C>(u16(a >> 16), u16(b >> 16)) ? 0xffff0000u : 0);
}
template <class F, bool (*C)(float, float)> FN u32 set_one_pair(u32 a, u32 b) {
  u32 one = F::store(1.0f);
  return (cmp_half<F, C>(u16(a), u16(b)) ? one : 0) | (cmp_half<F, C>(u16(a >> 16), u16(b >> 16)) ? one << 16 : 0);
}
template <u32 Class> FN bool testp(float x) {
  u32 a = bits_of(x) & 0x7fffffffu;
  return Class == 0 ? a < 0x7f800000u                       // finite
         : Class == 1 ? a == 0x7f800000u                    // infinite
         : Class == 2 ? a <= 0x7f800000u                    // number
         : Class == 3 ? a > 0x7f800000u                     // notanumber
         : Class == 4 ? a >= 0x00800000u && a < 0x7f800000u // normal
                      : a < 0x00800000u && a != 0;          // subnormal
}

// ---- conversions -----------------------------------------------------------------------------------

/// Integer to integer of another width: the low bits, extended by the destination's signedness.
template <class D, class S> FN D cvt_int(S a) { return D(a); }
template <class D, class S> FN D cvt_int_sat(S a) {
  constexpr s64 low = D(-1) < D(0) ? -(s64(1) << (sizeof(D) * 8 - 1)) : 0;
  constexpr u64 high = D(-1) < D(0) ? (u64(1) << (sizeof(D) * 8 - 1)) - 1 : low_of_width(sizeof(D) * 8);
  if (S(-1) < S(0) && s64(a) < low) return D(low);
  if (!(S(-1) < S(0) && s64(a) < 0) && u64(a) > high) return D(high);
  return D(a);
}
template <Round R, class T> FN T round_int(T x) {
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
template <Round R> FN float cvt_round_f32(float x) { return canon(round_int<R>(x)); }
template <Round R> FN float cvt_round_f32_ftz(float x) { return canon(round_int<R>(flush(x))); }
template <Round R> FN double cvt_round_f64(double x) { return canon(round_int<R>(x)); }
/// Float to integer clamps to the destination's range; NaN becomes 0.
template <class D, Round R, class S> FN D cvt_to_int(S x) {
  S r = round_int<R>(x);
  constexpr S top = S(u64(1) << (sizeof(D) * 8 - 1)) * (D(-1) < D(0) ? S(1) : S(2));
  constexpr S bottom = D(-1) < D(0) ? -top : S(0);
  constexpr D low = D(-1) < D(0) ? D(u64(1) << (sizeof(D) * 8 - 1)) : D(0);
  if (r != r) return D(0);
  if (r >= top) return D(~low);
  if (r <= bottom) return low;
  return D(r);
}
template <class D, Round R> FN D cvt_f32_int(float x) { return cvt_to_int<D, R>(x); }
template <class D, Round R> FN D cvt_f32_int_ftz(float x) { return cvt_to_int<D, R>(flush(x)); }
template <class D, Round R> FN D cvt_f64_int(double x) { return cvt_to_int<D, R>(x); }
template <class D, Round R> FN D cvt_f16_int(u16 x) { return cvt_to_int<D, R>(half_to_float(x)); }
template <class D, Round R> FN D cvt_bf16_int(u16 x) { return cvt_to_int<D, R>(bf16_to_float(x)); }
template <class S> FN float cvt_int_f32(S a) { return float(a); }
template <class S> FN double cvt_int_f64(S a) { return double(a); }
/// Odd-rounded double of a 64-bit integer, so that the next rounding is the only one.
template <class S> FN double int_odd(S a) {
  bool negative = S(-1) < S(0) && s64(a) < 0;
  u64 m = negative ? 0 - u64(s64(a)) : u64(a);
  u64 kept = m >> 53 ? (m & ~u64{0x7ff}) | ((m & 0x7ff) ? 0x800 : 0) : m;
  double d = double(kept);
  return negative ? -d : d;
}
template <Round R, class S> FN float cvt_int_f32_dir(S a) { return narrow<R>(int_odd(a)); }
template <class F, class S> FN u16 cvt_int_half(S a) { return round_to<F>(int_odd(a)); }
FN double cvt_f64_f32(float a) { return canon(double(a)); }
FN double cvt_f64_f32_ftz(float a) { return canon(double(flush(a))); }
template <Round R> FN float cvt_f32_f64(double a) { return canon(narrow<R>(a)); }
template <Round R> FN float cvt_f32_f64_ftz(double a) { return flush(canon(narrow<R>(a))); }
template <class F> FN float cvt_half_f32(u16 a) { return canon(F::load(a)); }
template <class F> FN float cvt_half_f32_ftz(u16 a) { return flush(canon(F::load(a))); }
template <class F> FN double cvt_half_f64(u16 a) { return canon(double(F::load(a))); }
template <class F> FN u16 cvt_f64_half(double a) { return round_to<F>(a); }
template <u16 (*F)(float)> FN u16 cvt_f32_half(float a) { return F(a); }
template <u16 (*F)(float)> FN u16 cvt_f32_half_ftz(float a) { return F(flush(a)); }
template <u16 (*F)(float)> FN u16 cvt_f32_half_relu(float a) { return F(a < 0.0f ? 0.0f : a); }
template <u16 (*F)(float)> FN u16 cvt_f32_half_sat(float a) { return F(saturate(a)); }
/// cvt.rn.bf16x2.f32 d, a, b: a goes to the high half.
template <u16 (*F)(float)> FN u32 cvt_f32_pair(float a, float b) { return u32(F(a)) << 16 | F(b); }
template <u16 (*F)(float)> FN u32 cvt_f32_pair_relu(float a, float b) {
  return u32(F(a < 0.0f ? 0.0f : a)) << 16 | F(b < 0.0f ? 0.0f : b);
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
