// Device functions for functions.inc that CUDA does not provide.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using s8 = signed char;
using u8 = unsigned char;
using s16 = short;
using u16 = unsigned short;
using s32 = int;
using u32 = unsigned;
using s64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

__device__ f32 root(f32 a) { return sqrtf(a); }
__device__ f64 root(f64 a) { return sqrt(a); }
__device__ f32 fused(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
__device__ f64 fused(f64 a, f64 b, f64 c) { return fma(a, b, c); }
__device__ f32 absolute(f32 a) { return fabsf(a); }
__device__ f64 absolute(f64 a) { return fabs(a); }
__device__ f32 smaller(f32 a, f32 b) { return fminf(a, b); }
__device__ f64 smaller(f64 a, f64 b) { return fmin(a, b); }
__device__ f32 larger(f32 a, f32 b) { return fmaxf(a, b); }
__device__ f64 larger(f64 a, f64 b) { return fmax(a, b); }
__device__ f32 with_sign(f32 a, f32 b) { return copysignf(a, b); }
__device__ f64 with_sign(f64 a, f64 b) { return copysign(a, b); }
__device__ f32 round_down(f32 a) { return floorf(a); }
__device__ f64 round_down(f64 a) { return floor(a); }
__device__ f32 round_up(f32 a) { return ceilf(a); }
__device__ f64 round_up(f64 a) { return ceil(a); }
__device__ f32 round_to_zero(f32 a) { return truncf(a); }
__device__ f64 round_to_zero(f64 a) { return trunc(a); }
__device__ f32 round_to_even(f32 a) { return rintf(a); }
__device__ f64 round_to_even(f64 a) { return rint(a); }
__device__ f32 round_away(f32 a) { return roundf(a); }
__device__ f64 round_away(f64 a) { return round(a); }
template <class T>
__device__ u32 is_finite(T a) {
  return isfinite(a);
}
template <class T>
__device__ u32 is_infinite(T a) {
  return isinf(a);
}

__device__ __half fp16(u16 a) { return __ushort_as_half(a); }
__device__ __nv_bfloat16 bf16(u16 a) { return __ushort_as_bfloat16(a); }
__device__ u16 bits(__half a) { return __half_as_ushort(a); }
__device__ u16 bits(__nv_bfloat16 a) { return __bfloat16_as_ushort(a); }
__device__ f32 to_float(__half a) { return __half2float(a); }
__device__ f32 to_float(__nv_bfloat16 a) { return __bfloat162float(a); }
__device__ __half from_double_fp16(f64 a) { return __double2half(a); }
__device__ __nv_bfloat16 from_double_bf16(f64 a) { return __double2bfloat16(a); }
union Pair {
  u32 u;
  __half2 h;
  __device__ explicit Pair(u32 a) : u(a) {}
  __device__ explicit Pair(__half2 a) : h(a) {}
};
__device__ u32 add_pair(u32 a, u32 b) { return Pair(__hadd2_rn(Pair(a).h, Pair(b).h)).u; }
__device__ u32 fma_pair(u32 a, u32 b, u32 c) { return Pair(__hfma2(Pair(a).h, Pair(b).h, Pair(c).h)).u; }
__device__ u32 less_pair(u32 a, u32 b) { return __hlt2_mask(Pair(a).h, Pair(b).h); }

/// The upper word of (b, a) + (a, c), and the lower word.
__device__ u64 carry_add(u64 a, u64 b, u64 c) {
  u64 low, high;
  asm("add.cc.u64 %0, %2, %3;\n\taddc.u64 %1, %4, %5;" : "=&l"(low), "=&l"(high) : "l"(a), "l"(c), "l"(b), "l"(a));
  return low ^ high * 3;
}
__device__ u64 carry_sub(u64 a, u64 b, u64 c) {
  u32 w[3];
  asm("sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;"
      : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2])
      : "r"(u32(a)), "r"(u32(a >> 32)), "r"(u32(c)), "r"(u32(b)), "r"(u32(b >> 32)), "r"(u32(c >> 32)));
  return (u64(w[2]) << 32 | w[1]) ^ w[0];
}
/// The carry that addc reads after subtractions: 1 without a borrow.
__device__ u64 borrow_as_carry(u64 a, u64 b, u64 c) {
  u64 low, high, carry;
  asm("sub.cc.u64 %0, %3, %4;\n\tsubc.cc.u64 %1, %5, %3;\n\taddc.u64 %2, %4, 0;"
      : "=&l"(low), "=&l"(high), "=&l"(carry)
      : "l"(a), "l"(b), "l"(c));
  return low ^ high * 3 ^ carry * 5;
}
/// The upper two words of (a's lower word) * b + c.
__device__ u64 carry_mad(u64 a, u64 b, u64 c) {
  u32 w[3];
  asm("mad.lo.cc.u32 %0, %3, %4, %6;\n\tmadc.hi.cc.u32 %1, %3, %4, %7;\n\taddc.u32 %2, 0, 0;\n\t"
      "mad.lo.cc.u32 %1, %3, %5, %1;\n\tmadc.hi.u32 %2, %3, %5, %2;"
      : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2])
      : "r"(u32(a)), "r"(u32(b)), "r"(u32(b >> 32)), "r"(u32(c)), "r"(u32(c >> 32)));
  return u64(w[2]) << 32 | w[1];
}
__device__ s32 saturate_add(s32 a, s32 b) {
  s32 r;
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ s32 saturate_sub(s32 a, s32 b) {
  s32 r;
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

#define F(name, R, A, B, C, ...)                                                     \
  extern "C" __global__ void k_##name(const A* pa, const B* pb, const C* pc, R* y) { \
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;                             \
    const A a = pa[i];                                                               \
    const B b = pb[i];                                                               \
    const C c = pc[i];                                                               \
    y[i] = static_cast<R>(__VA_ARGS__);                                              \
  }
