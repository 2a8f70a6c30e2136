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

FN bool sign_bit(float a) { return bits_of(a) >> 31; }
FN bool sign_bit(double a) { return bits_of(a) >> 63; }
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

template <class T>
FN T fadd(T a, T b) {
  return canon(a + b);
}
template <class T>
FN T fsub(T a, T b) {
  return canon(a - b);
}
template <class T>
FN T fmul(T a, T b) {
  return canon(a * b);
}
template <class T>
FN T fdiv(T a, T b) {
  return canon(a / b);
}
template <class T>
FN T ffma(T a, T b, T c) {
  return canon(fma_single(a, b, c));
}
FN float fadd_ftz(float a, float b) { return flush(fadd(flush(a), flush(b))); }
FN float fsub_ftz(float a, float b) { return flush(fsub(flush(a), flush(b))); }
FN float fmul_ftz(float a, float b) { return flush(fmul(flush(a), flush(b))); }
/// a * (1 / b): of a divisor above 2^126 the reciprocal is flushed (PTX ISA, div).
FN float div_approx(float a, float b) {
  const float size = __builtin_fabsf(b);
  return fdiv(a, size > 0x1p126f && size < __builtin_inff() ? __builtin_copysignf(__builtin_inff(), b) : b);
}
FN float div_approx_ftz(float a, float b) { return flush(div_approx(flush(a), flush(b))); }
FN float fdiv_ftz(float a, float b) { return flush(fdiv(flush(a), flush(b))); }
FN float ffma_ftz(float a, float b, float c) { return flush(ffma(flush(a), flush(b), flush(c))); }
template <float (*F)(float, float)>
FN float sat2(float a, float b) {
  return saturate(F(a, b));
}
template <float (*F)(float, float, float)>
FN float sat3(float a, float b, float c) {
  return saturate(F(a, b, c));
}
/// a*b+c in a direction. Downwards, a sum that vanishes is -0 unless both of its terms are +0.
template <Round R>
FN float sum_dir(float a, float b, float c) {
  double p = double(a) * double(b), x = double(c);
  bool vanishes = p + x == 0.0 && (sign_bit(p) || sign_bit(x));
  return R == Round::kDown && vanishes ? -0.0f : canon(narrow<R>(fma_odd(a, b, c)));
}
template <Round R>
FN float fadd_dir(float a, float b) {
  return sum_dir<R>(a, 1.0f, b);
}
template <Round R>
FN float fsub_dir(float a, float b) {
  return sum_dir<R>(a, 1.0f, -b);
}
template <Round R>
FN float fmul_dir(float a, float b) {
  return canon(narrow<R>(double(a) * double(b)));
}
template <Round R>
FN float ffma_dir(float a, float b, float c) {
  return sum_dir<R>(a, b, c);
}
template <float (*F)(float, float)>
FN float ftz2(float a, float b) {
  return flush(F(flush(a), flush(b)));
}
template <float (*F)(float, float, float)>
FN float ftz3(float a, float b, float c) {
  return flush(F(flush(a), flush(b), flush(c)));
}
FN float fneg(float a) { return f32_of(bits_of(a) ^ 0x80000000u); }
FN float fabs32(float a) { return f32_of(bits_of(a) & 0x7fffffffu); }
FN float fneg_ftz(float a) { return fneg(flush(a)); }
FN float fabs_ftz(float a) { return fabs32(flush(a)); }
FN double fneg64(double a) { return f64_of(bits_of(a) ^ (u64{1} << 63)); }
FN double fabs64(double a) { return f64_of(bits_of(a) & ~(u64{1} << 63)); }

/// The operand that is a number wins over NaN; -0 is below +0.
template <class T>
FN T fmin(T a, T b) {
  T lower = a < b ? a : (b < a ? b : (sign_bit(a) ? a : b));
  return canon(a != a ? b : (b != b ? a : lower));
}
template <class T>
FN T fmax(T a, T b) {
  T upper = a > b ? a : (b > a ? b : (sign_bit(a) ? b : a));
  return canon(a != a ? b : (b != b ? a : upper));
}
template <class T>
FN T fmin_nan(T a, T b) {
  return canon(a != a ? a : b != b ? b : fmin(a, b));
}
template <class T>
FN T fmax_nan(T a, T b) {
  return canon(a != a ? a : b != b ? b : fmax(a, b));
}
FN float fmin_ftz(float a, float b) { return fmin(flush(a), flush(b)); }
FN float fmax_ftz(float a, float b) { return fmax(flush(a), flush(b)); }
FN float fmin_nan_ftz(float a, float b) { return fmin_nan(flush(a), flush(b)); }
FN float fmax_nan_ftz(float a, float b) { return fmax_nan(flush(a), flush(b)); }
FN float copysign32(float a, float b) { return f32_of((bits_of(a) & 0x80000000u) | (bits_of(b) & 0x7fffffffu)); }
FN double copysign64(double a, double b) {
  return f64_of((bits_of(a) & (u64{1} << 63)) | (bits_of(b) & ~(u64{1} << 63)));
}

/// What the processor gives in another rounding mode. The empty assembly keeps the operation between the two switches.
template <Round R, class Op, class T>
FN T in_mode(Op op, T a, T b, T c) {
#if defined(__x86_64__)
  u32 old, mode;
  __asm__ volatile("stmxcsr %0" : "=m"(old));
  mode = (old & ~0x6000u) | (R == Round::kZero ? 0x6000u : R == Round::kDown ? 0x2000u : 0x4000u);
  __asm__ volatile("ldmxcsr %3" : "+x"(a), "+x"(b), "+x"(c) : "m"(mode));
  T r = op(a, b, c);
  __asm__ volatile("ldmxcsr %1" : "+x"(r) : "m"(old));
#else
  u64 old, mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(old));
  mode = (old & ~(u64{3} << 22)) | (R == Round::kZero ? u64{3} : R == Round::kDown ? u64{2} : u64{1}) << 22;
  __asm__ volatile("msr fpcr, %3" : "+w"(a), "+w"(b), "+w"(c) : "r"(mode));
  T r = op(a, b, c);
  __asm__ volatile("msr fpcr, %1" : "+w"(r) : "r"(old));
#endif
  return canon(r);
}
template <Round R, class T>
FN T add_mode(T a, T b) {
  return in_mode<R>([](T x, T y, T) { return x + y; }, a, b, a);
}
template <Round R, class T>
FN T sub_mode(T a, T b) {
  return in_mode<R>([](T x, T y, T) { return x - y; }, a, b, a);
}
template <Round R, class T>
FN T mul_mode(T a, T b) {
  return in_mode<R>([](T x, T y, T) { return x * y; }, a, b, a);
}
template <Round R, class T>
FN T div_mode(T a, T b) {
  return in_mode<R>([](T x, T y, T) { return x / y; }, a, b, a);
}
template <Round R, class T>
FN T rcp_mode(T a) {
  return in_mode<R>([](T x, T y, T) { return x / y; }, T(1), a, a);
}
template <Round R>
FN float sqrt_mode(float a) {
  return in_mode<R>([](float x, float, float) { return __builtin_sqrtf(x); }, a, a, a);
}
template <Round R>
FN double sqrt_mode64(double a) {
  return in_mode<R>([](double x, double, double) { return __builtin_sqrt(x); }, a, a, a);
}
template <Round R>
FN double fma_mode(double a, double b, double c) {
  return in_mode<R>([](double x, double y, double z) { return __builtin_fma(x, y, z); }, a, b, c);
}
template <float (*F)(float)>
FN float ftz1(float a) {
  return flush(F(flush(a)));
}

template <class T>
FN T frcp(T a) {
  return canon(T(1) / a);
}
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
  float clamped = x < 129.0f ? (x > -160.0f ? x : -160.0f) : 129.0f;  // NaN becomes 129
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
  a = a < 20.0 ? a : 20.0;
  double e = exp2_double(a * -2.8853900817779268);
  float r = float((1.0 - e) / (1.0 + e));
  r = a < 0x1p-13 ? float(a) : r;  // 1 - e cancels; x^3/3 is below half an ulp
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
  d = d < 1e15 ? (d > -1e15 ? d : -1e15) : 1e15;
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
