// Host implementations of the functions in functions.inc, by CUDA's definitions and with host arithmetic. Directed
// roundings use the processor's rounding modes; 16-bit formats are rounded from exact values.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace roofgen::check::arithmetic {

using s8 = int8_t;
using u8 = uint8_t;
using s16 = int16_t;
using u16 = uint16_t;
using s32 = int32_t;
using u32 = uint32_t;
using s64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;
using u128 = unsigned __int128;

// ---- integers ----
inline s32 __mulhi(s32 a, s32 b) { return static_cast<s32>(s64{a} * b >> 32); }
inline u32 __umulhi(u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }
inline s64 __mul64hi(s64 a, s64 b) { return static_cast<s64>(static_cast<__int128>(a) * b >> 64); }
inline u64 __umul64hi(u64 a, u64 b) { return static_cast<u64>(static_cast<u128>(a) * b >> 64); }
inline s32 __mul24(s32 a, s32 b) { return static_cast<s32>(s64{a << 8 >> 8} * (b << 8 >> 8)); }
inline u32 __umul24(u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }
inline u32 __fns(u32 mask, u32 base, s32 n) {
  int left = n < 0 ? -n : n;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
    if (mask >> at & 1) --left;
    if (n == 0) return left < 0 ? base : ~0u;
    if (left == 0) return static_cast<u32>(at);
  }
  return ~0u;
}
inline u32 __sad(s32 a, s32 b, u32 c) { return c + static_cast<u32>(a < b ? s64{b} - a : s64{a} - b); }
inline u32 __usad(u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }
inline s32 __hadd(s32 a, s32 b) { return static_cast<s32>((s64{a} + b) >> 1); }
inline u32 __urhadd(u32 a, u32 b) { return static_cast<u32>((u64{a} + b + 1) >> 1); }
inline s32 __popcll(u64 a) { return std::popcount(a); }
inline s32 __popc(u32 a) { return std::popcount(a); }
inline s32 __clz(u32 a) { return std::countl_zero(a); }
inline s32 __clzll(u64 a) { return std::countl_zero(a); }
inline s32 __ffs(u32 a) { return a ? std::countr_zero(a) + 1 : 0; }
inline s32 __ffsll(u64 a) { return a ? std::countr_zero(a) + 1 : 0; }
inline u64 __brevll(u64 a) {
  u64 r = 0;
  for (int i = 0; i < 64; ++i) r |= (a >> i & 1) << (63 - i);
  return r;
}
inline u32 __brev(u32 a) { return static_cast<u32>(__brevll(a) >> 32); }
inline u32 __byte_perm(u32 a, u32 b, u32 select) {
  const u64 all = u64{b} << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; ++i) r |= static_cast<u32>(all >> 8 * (select >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
inline u32 __funnelshift_l(u32 low, u32 high, u32 n) {
  return static_cast<u32>(((u64{high} << 32 | low) << (n & 31)) >> 32);
}
inline u32 __funnelshift_r(u32 low, u32 high, u32 n) { return static_cast<u32>((u64{high} << 32 | low) >> (n & 31)); }
inline u32 __funnelshift_lc(u32 low, u32 high, u32 n) { return n >= 32 ? low : __funnelshift_l(low, high, n); }
inline u32 __funnelshift_rc(u32 low, u32 high, u32 n) { return n >= 32 ? high : __funnelshift_r(low, high, n); }
template <class Byte, class Word, class T>
T dot(T a, T b, T c, int count, int first) {
  for (int i = 0; i < count; ++i)
    c = static_cast<T>(c + static_cast<T>(static_cast<Word>(a >> static_cast<int>(8 * sizeof(Word)) * i)) *
                               static_cast<T>(static_cast<Byte>(b >> 8 * (first + i))));
  return c;
}
inline s32 __dp4a(s32 a, s32 b, s32 c) { return dot<s8, s8>(a, b, c, 4, 0); }
inline u32 __dp4a(u32 a, u32 b, u32 c) { return dot<u8, u8>(a, b, c, 4, 0); }
inline s32 __dp2a_lo(s32 a, s32 b, s32 c) { return dot<s8, s16>(a, b, c, 2, 0); }
inline u32 __dp2a_lo(u32 a, u32 b, u32 c) { return dot<u8, u16>(a, b, c, 2, 0); }
inline s32 __dp2a_hi(s32 a, s32 b, s32 c) { return dot<s8, s16>(a, b, c, 2, 2); }
inline u32 __dp2a_hi(u32 a, u32 b, u32 c) { return dot<u8, u16>(a, b, c, 2, 2); }
template <class Part, class Op>
u32 each_part(u32 a, u32 b, Op op) {
  u32 r = 0;
  for (size_t i = 0; i < 4 / sizeof(Part); ++i) {
    const size_t shift = 8 * sizeof(Part) * i;
    r |= (static_cast<u32>(op(static_cast<Part>(a >> shift), static_cast<Part>(b >> shift))) &
          (sizeof(Part) == 1 ? 0xffu : 0xffffu))
         << shift;
  }
  return r;
}
inline u32 __vadd2(u32 a, u32 b) {
  return each_part<u16>(a, b, [](int x, int y) { return x + y; });
}
inline u32 __vsub4(u32 a, u32 b) {
  return each_part<u8>(a, b, [](int x, int y) { return x - y; });
}
inline u32 __vmaxs4(u32 a, u32 b) {
  return each_part<s8>(a, b, [](int x, int y) { return x < y ? y : x; });
}
inline u32 __vminu2(u32 a, u32 b) {
  return each_part<u16>(a, b, [](int x, int y) { return x < y ? x : y; });
}
inline u32 __vcmpeq4(u32 a, u32 b) {
  return each_part<u8>(a, b, [](int x, int y) { return x == y ? -1 : 0; });
}
inline u32 __vabsdiffu4(u32 a, u32 b) {
  return each_part<u8>(a, b, [](int x, int y) { return x < y ? y - x : x - y; });
}
inline u64 carry_add(u64 a, u64 b, u64 c) {
  const u128 sum = (static_cast<u128>(b) << 64 | a) + (static_cast<u128>(a) << 64 | c);
  return static_cast<u64>(sum) ^ static_cast<u64>(sum >> 64) * 3;
}
inline u64 carry_sub(u64 a, u64 b, u64 c) {
  const u128 x = static_cast<u128>(c & 0xffffffff) << 64 | a, y = static_cast<u128>(c >> 32) << 64 | b, d = x - y;
  return (u64{static_cast<u32>(d >> 64)} << 32 | static_cast<u32>(d >> 32)) ^ static_cast<u32>(d);
}
inline u64 borrow_as_carry(u64 a, u64 b, u64 c) {
  const u128 x = static_cast<u128>(c) << 64 | a, y = static_cast<u128>(a) << 64 | b;
  return static_cast<u64>(x - y) ^ static_cast<u64>((x - y) >> 64) * 3 ^ (b + (x >= y)) * 5;
}
inline u64 carry_mad(u64 a, u64 b, u64 c) {
  return static_cast<u64>((static_cast<u128>(static_cast<u32>(a)) * b + c) >> 32);
}
inline s32 clamped(s64 a) { return static_cast<s32>(a < INT32_MIN ? INT32_MIN : a > INT32_MAX ? INT32_MAX : a); }
inline s32 saturate_add(s32 a, s32 b) { return clamped(s64{a} + b); }
inline s32 saturate_sub(s32 a, s32 b) { return clamped(s64{a} - b); }

// ---- floating point ----
template <class T>
T root(T a) {
  return std::sqrt(a);
}
template <class T>
T fused(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <class T>
T absolute(T a) {
  return std::fabs(a);
}
/// A number takes precedence over NaN, and -0 is less than +0.
template <class T>
T smaller(T a, T b) {
  return a != a ? b : b != b ? a : a < b ? a : b < a ? b : std::signbit(a) ? a : b;
}
template <class T>
T larger(T a, T b) {
  return a != a ? b : b != b ? a : a > b ? a : b > a ? b : std::signbit(a) ? b : a;
}
template <class T>
T with_sign(T a, T b) {
  return std::copysign(a, b);
}
template <class T>
T round_down(T a) {
  return std::floor(a);
}
template <class T>
T round_up(T a) {
  return std::ceil(a);
}
template <class T>
T round_to_zero(T a) {
  return std::trunc(a);
}
template <class T>
T round_to_even(T a) {
  return std::nearbyint(a);
}
template <class T>
T round_away(T a) {
  return std::round(a);
}
template <class T>
u32 is_finite(T a) {
  return std::isfinite(a);
}
template <class T>
u32 is_infinite(T a) {
  return std::isinf(a);
}
inline f32 __saturatef(f32 a) { return a > 0 ? (a < 1 ? a : 1) : 0; }
inline u32 __float_as_uint(f32 a) { return std::bit_cast<u32>(a); }
inline s64 __double_as_longlong(f64 a) { return std::bit_cast<s64>(a); }
inline s32 __double2hiint(f64 a) { return static_cast<s32>(std::bit_cast<u64>(a) >> 32); }

/// The result of `op` in a rounding mode of the processor.
template <class Op>
auto in_mode(int mode, Op op) {
  std::fesetround(mode);
  volatile auto result = op();
  std::fesetround(FE_TONEAREST);
  return static_cast<decltype(op())>(result);
}
/// The result of `op` of a value in a rounding mode. No compiler can compute with the value beforehand.
template <class A, class Op>
auto rounded(int mode, A a, Op op) {
  return in_mode(mode, [&] {
    volatile A x = a;
    return op(x);
  });
}
/// Converts to an integer: values beyond its range saturate, NaN becomes zero.
template <class D, class S>
D to_integer(int mode, S a) {
  const S r = rounded(mode, a, [](S x) { return std::nearbyint(x); });
  if (r != r) return 0;
  constexpr int bits = std::numeric_limits<D>::digits;
  if (r >= std::ldexp(S(1), bits)) return std::numeric_limits<D>::max();
  if (r <= (std::is_signed_v<D> ? -std::ldexp(S(1), bits) : S(0))) return std::numeric_limits<D>::min();
  return static_cast<D>(r);
}

// ---- 16-bit formats ----
using Exact = __float128;
/// Rounds to `Digits` significand digits with the given exponent range, in all rounding modes. Returns the bits without
/// the sign.
template <int Digits, int Least, int Most>
Exact rounded(int mode, Exact x) {
  if (x != x || x == 0) return x;
  const bool negative = x < 0;
  const Exact a = negative ? -x : x;
  const auto power = [](int e) -> Exact { return std::ldexp(1.0, e); };
  const Exact limit = power(Most + 1), infinite = std::numeric_limits<f64>::infinity();
  if (a == infinite) return x;
  int e = std::clamp(std::ilogb(static_cast<f64>(a)), Least, Most + 1);
  if (e > Least && a < power(e)) --e;  // a became a power of two as it was rounded to f64
  const bool up = mode == (negative ? FE_DOWNWARD : FE_UPWARD);
  Exact r;
  if (e > Most) {
    r = up || mode == FE_TONEAREST ? infinite : limit - power(Most + 1 - Digits);
  } else {
    const Exact quantum = power(e + 1 - Digits);
    const auto below = static_cast<u64>(a / quantum);
    const Exact rest = a / quantum - static_cast<Exact>(below);
    const bool more =
        rest != 0 && (up || (mode == FE_TONEAREST && (rest > Exact(0.5) || (rest == Exact(0.5) && (below & 1)))));
    r = static_cast<Exact>(below + more) * quantum;
    if (r >= limit) r = infinite;
  }
  return negative ? -r : r;
}
struct Fp16 {
  u16 u;
  static Fp16 from(int mode, Exact x, bool negative_zero = false) {
    if (x != x) return {0x7fff};
    const auto v = static_cast<f32>(rounded<11, -14, 15>(mode, x));
    return {static_cast<u16>(std::bit_cast<u16>(static_cast<_Float16>(v)) | (v == 0 && negative_zero ? 0x8000 : 0))};
  }
  f32 value() const { return static_cast<f32>(std::bit_cast<_Float16>(u)); }
};
struct Bf16 {
  u16 u;
  static Bf16 from(int mode, Exact x, bool negative_zero = false) {
    if (x != x) return {0x7fff};
    const auto v = static_cast<f32>(rounded<8, -126, 127>(mode, x));
    return {static_cast<u16>(std::bit_cast<u32>(v) >> 16 | (v == 0 && negative_zero ? 0x8000u : 0))};
  }
  f32 value() const { return std::bit_cast<f32>(u32{u} << 16); }
};
inline Fp16 fp16(u16 a) { return {a}; }
inline Bf16 bf16(u16 a) { return {a}; }
template <class H>
u16 bits(H a) {
  return a.u;
}
template <class H>
f32 to_float(H a) {
  return a.value();
}
inline Fp16 from_double_fp16(f64 a) { return Fp16::from(FE_TONEAREST, a, std::signbit(a)); }
inline Bf16 from_double_bf16(f64 a) { return Bf16::from(FE_TONEAREST, a, std::signbit(a)); }
/// The sign of zero follows float arithmetic, where sums and products of these formats do not underflow.
template <class H>
H __hadd_rn(H a, H b) {
  return H::from(FE_TONEAREST, Exact(a.value()) + Exact(b.value()), std::signbit(a.value() + b.value()));
}
template <class H>
H __hsub_rn(H a, H b) {
  return H::from(FE_TONEAREST, Exact(a.value()) - Exact(b.value()), std::signbit(a.value() - b.value()));
}
template <class H>
H __hmul_rn(H a, H b) {
  return H::from(FE_TONEAREST, Exact(a.value()) * Exact(b.value()), std::signbit(a.value() * b.value()));
}
template <class H>
H __hfma(H a, H b, H c) {
  // The sum may need more digits than Exact has. The lost part only decides the side of a tie.
  const Exact p = Exact(a.value()) * Exact(b.value()), x = c.value(), t = (p + x) - p,
              lost = (p - ((p + x) - t)) + (x - t);
  Exact sum = p + x;
  if (lost != 0 && lost == lost) sum += (sum < 0 ? -sum : sum) * 0x1p-100 * (lost > 0 ? 1 : -1);
  return H::from(FE_TONEAREST, sum, std::signbit(std::fma(f64{a.value()}, f64{b.value()}, f64{c.value()})));
}
template <class H>
H __hfma_relu(H a, H b, H c) {
  const H r = __hfma(a, b, c);
  return std::isnan(r.value()) || !(r.u >> 15) ? r : H{0};
}
template <class H>
H __hneg(H a) {
  return {static_cast<u16>(a.u ^ 0x8000)};
}
template <class H>
H __habs(H a) {
  return {static_cast<u16>(a.u & 0x7fff)};
}
template <class H>
H __hmin(H a, H b) {
  const f32 r = smaller(a.value(), b.value());
  return H::from(FE_TONEAREST, r, std::signbit(r));
}
template <class H>
H __hmax(H a, H b) {
  const f32 r = larger(a.value(), b.value());
  return H::from(FE_TONEAREST, r, std::signbit(r));
}
template <class H>
H rounded_by(int mode, H a) {
  const f32 r = rounded(mode, a.value(), [](f32 x) { return std::nearbyint(x); });
  return H::from(FE_TONEAREST, r, std::signbit(a.value()));
}
template <class H>
H hfloor(H a) {
  return rounded_by(FE_DOWNWARD, a);
}
template <class H>
H hceil(H a) {
  return rounded_by(FE_UPWARD, a);
}
template <class H>
H htrunc(H a) {
  return rounded_by(FE_TOWARDZERO, a);
}
template <class H>
H hrint(H a) {
  return rounded_by(FE_TONEAREST, a);
}
inline Fp16 saturated(Fp16 a) {
  const f32 v = __saturatef(a.value());
  return Fp16::from(FE_TONEAREST, v);
}
inline Fp16 __hadd_sat(Fp16 a, Fp16 b) { return saturated(__hadd_rn(a, b)); }
inline Fp16 __hmul_sat(Fp16 a, Fp16 b) { return saturated(__hmul_rn(a, b)); }
inline Fp16 __hfma_sat(Fp16 a, Fp16 b, Fp16 c) { return saturated(__hfma(a, b, c)); }
#define COMPARISON(name, op)                                                           \
  template <class H>                                                                   \
  u32 __h##name(H a, H b) {                                                            \
    return a.value() op b.value();                                                     \
  }                                                                                    \
  template <class H>                                                                   \
  u32 __h##name##u(H a, H b) {                                                         \
    return a.value() op b.value() || a.value() != a.value() || b.value() != b.value(); \
  }
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(eq, ==)
COMPARISON(gt, >)
COMPARISON(ge, >=)
#undef COMPARISON
/// Unlike the other comparisons, __hne is false for NaN.
template <class H>
u32 __hne(H a, H b) {
  return a.value() < b.value() || a.value() > b.value();
}
template <class H>
u32 __hneu(H a, H b) {
  return a.value() != b.value();
}
template <class H>
u32 __hisnan(H a) {
  return a.value() != a.value();
}
inline Bf16 __int2bfloat16_rn(s32 a) { return Bf16::from(FE_TONEAREST, a); }
inline Bf16 __float2bfloat16_rn(f32 a) { return Bf16::from(FE_TONEAREST, a, std::signbit(a)); }
inline Bf16 __float2bfloat16_rz(f32 a) { return Bf16::from(FE_TOWARDZERO, a, std::signbit(a)); }
inline s32 __bfloat162int_rz(Bf16 a) { return to_integer<s32>(FE_TOWARDZERO, a.value()); }
template <class Op>
u32 each_half(u32 a, u32 b, u32 c, Op op) {
  return u32{op(fp16(static_cast<u16>(a)), fp16(static_cast<u16>(b)), fp16(static_cast<u16>(c)))} |
         u32{op(fp16(static_cast<u16>(a >> 16)), fp16(static_cast<u16>(b >> 16)), fp16(static_cast<u16>(c >> 16)))}
             << 16;
}
inline u32 add_pair(u32 a, u32 b) {
  return each_half(a, b, 0, [](Fp16 x, Fp16 y, Fp16) { return __hadd_rn(x, y).u; });
}
inline u32 fma_pair(u32 a, u32 b, u32 c) {
  return each_half(a, b, c, [](Fp16 x, Fp16 y, Fp16 z) { return __hfma(x, y, z).u; });
}
inline u32 less_pair(u32 a, u32 b) {
  return each_half(a, b, 0, [](Fp16 x, Fp16 y, Fp16) { return static_cast<u16>(__hlt(x, y) ? 0xffff : 0); });
}

#define ROUNDINGS(r, mode)                                                             \
  inline f32 __fadd_##r(f32 a, f32 b) {                                                \
    return rounded(mode, a, [&](f32 x) { return x + b; });                             \
  }                                                                                    \
  inline f32 __fsub_##r(f32 a, f32 b) {                                                \
    return rounded(mode, a, [&](f32 x) { return x - b; });                             \
  }                                                                                    \
  inline f32 __fmul_##r(f32 a, f32 b) {                                                \
    return rounded(mode, a, [&](f32 x) { return x * b; });                             \
  }                                                                                    \
  inline f32 __fmaf_##r(f32 a, f32 b, f32 c) {                                         \
    return rounded(mode, a, [&](f32 x) { return std::fma(x, b, c); });                 \
  }                                                                                    \
  inline f32 __fdiv_##r(f32 a, f32 b) {                                                \
    return rounded(mode, a, [&](f32 x) { return x / b; });                             \
  }                                                                                    \
  inline f32 __frcp_##r(f32 a) {                                                       \
    return rounded(mode, a, [&](f32 x) { return 1.0f / x; });                          \
  }                                                                                    \
  inline f32 __fsqrt_##r(f32 a) {                                                      \
    return rounded(mode, a, [&](f32 x) { return std::sqrt(x); });                      \
  }                                                                                    \
  inline f64 __dadd_##r(f64 a, f64 b) {                                                \
    return rounded(mode, a, [&](f64 x) { return x + b; });                             \
  }                                                                                    \
  inline f64 __dsub_##r(f64 a, f64 b) {                                                \
    return rounded(mode, a, [&](f64 x) { return x - b; });                             \
  }                                                                                    \
  inline f64 __dmul_##r(f64 a, f64 b) {                                                \
    return rounded(mode, a, [&](f64 x) { return x * b; });                             \
  }                                                                                    \
  inline f64 __fma_##r(f64 a, f64 b, f64 c) {                                          \
    return rounded(mode, a, [&](f64 x) { return std::fma(x, b, c); });                 \
  }                                                                                    \
  inline f64 __ddiv_##r(f64 a, f64 b) {                                                \
    return rounded(mode, a, [&](f64 x) { return x / b; });                             \
  }                                                                                    \
  inline f64 __drcp_##r(f64 a) {                                                       \
    return rounded(mode, a, [&](f64 x) { return 1.0 / x; });                           \
  }                                                                                    \
  inline f64 __dsqrt_##r(f64 a) {                                                      \
    return rounded(mode, a, [&](f64 x) { return std::sqrt(x); });                      \
  }                                                                                    \
  inline f32 __double2float_##r(f64 a) {                                               \
    return rounded(mode, a, [&](f64 x) { return static_cast<f32>(x); });               \
  }                                                                                    \
  inline s32 __float2int_##r(f32 a) { return to_integer<s32>(mode, a); }               \
  inline u32 __float2uint_##r(f32 a) { return to_integer<u32>(mode, a); }              \
  inline s64 __float2ll_##r(f32 a) { return to_integer<s64>(mode, a); }                \
  inline u64 __float2ull_##r(f32 a) { return to_integer<u64>(mode, a); }               \
  inline s32 __double2int_##r(f64 a) { return to_integer<s32>(mode, a); }              \
  inline u32 __double2uint_##r(f64 a) { return to_integer<u32>(mode, a); }             \
  inline s64 __double2ll_##r(f64 a) { return to_integer<s64>(mode, a); }               \
  inline u64 __double2ull_##r(f64 a) { return to_integer<u64>(mode, a); }              \
  inline f32 __int2float_##r(s32 a) {                                                  \
    return rounded(mode, a, [&](s32 x) { return static_cast<f32>(x); });               \
  }                                                                                    \
  inline f32 __uint2float_##r(u32 a) {                                                 \
    return rounded(mode, a, [&](u32 x) { return static_cast<f32>(x); });               \
  }                                                                                    \
  inline f32 __ll2float_##r(s64 a) {                                                   \
    return rounded(mode, a, [&](s64 x) { return static_cast<f32>(x); });               \
  }                                                                                    \
  inline f32 __ull2float_##r(u64 a) {                                                  \
    return rounded(mode, a, [&](u64 x) { return static_cast<f32>(x); });               \
  }                                                                                    \
  inline f64 __ll2double_##r(s64 a) {                                                  \
    return rounded(mode, a, [&](s64 x) { return static_cast<f64>(x); });               \
  }                                                                                    \
  inline f64 __ull2double_##r(u64 a) {                                                 \
    return rounded(mode, a, [&](u64 x) { return static_cast<f64>(x); });               \
  }                                                                                    \
  inline Fp16 __float2half_##r(f32 a) { return Fp16::from(mode, a, std::signbit(a)); } \
  inline Fp16 __int2half_##r(s32 a) { return Fp16::from(mode, a); }                    \
  inline Fp16 __uint2half_##r(u32 a) { return Fp16::from(mode, a); }                   \
  inline Fp16 __ll2half_##r(s64 a) { return Fp16::from(mode, a); }                     \
  inline Fp16 __ushort2half_##r(u16 a) { return Fp16::from(mode, a); }                 \
  inline s32 __half2int_##r(Fp16 a) { return to_integer<s32>(mode, a.value()); }       \
  inline u32 __half2uint_##r(Fp16 a) { return to_integer<u32>(mode, a.value()); }      \
  inline s64 __half2ll_##r(Fp16 a) { return to_integer<s64>(mode, a.value()); }        \
  inline s16 __half2short_##r(Fp16 a) { return to_integer<s16>(mode, a.value()); }
ROUNDINGS(rn, FE_TONEAREST)
ROUNDINGS(rz, FE_TOWARDZERO)
ROUNDINGS(rd, FE_DOWNWARD)
ROUNDINGS(ru, FE_UPWARD)
#undef ROUNDINGS

}  // namespace roofgen::check::arithmetic
