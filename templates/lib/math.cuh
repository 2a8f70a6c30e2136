// Scalar helpers: the 16-bit element types, conversions, fast base-2 functions, quad reductions.
// A quad is four adjacent lanes; in every mma fragment it owns one row of the accumulator.

/// A 16-bit element as raw bits. The tag decides which instructions are used.
struct Bf16 {
  unsigned short bits;
};
struct Fp16 {
  unsigned short bits;
};

__device__ __forceinline__ float neg_inf() { return __int_as_float(0xff800000); }
constexpr float kLn2 = 0.693147180559945309f, kLog2e = 1.44269504088896341f;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// Two floats rounded to nearest even, `lo` in the low half.
template <class T>
__device__ __forceinline__ unsigned pack2(float lo, float hi);
template <>
__device__ __forceinline__ unsigned pack2<Bf16>(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
template <>
__device__ __forceinline__ unsigned pack2<Fp16>(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

/// The two elements of a pair as floats, exact.
template <class T>
__device__ __forceinline__ float2 unpack2(unsigned pair);
template <>
__device__ __forceinline__ float2 unpack2<Bf16>(unsigned pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
template <>
__device__ __forceinline__ float2 unpack2<Fp16>(unsigned pair) {
  float2 r;
  asm("{ .reg .b16 lo, hi; mov.b32 { lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
      : "=f"(r.x), "=f"(r.y)
      : "r"(pair));
  return r;
}

/// 2^x with the special function unit: 2 ulp, results below 2^-126 are 0, 2^-inf is 0.
__device__ __forceinline__ float ex2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float log2_approx(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float rcp_approx(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lane));
  return x;
}
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(kAllLanes, x, lane);
  return x;
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// A compile-time integer as an argument, and a loop over 0 .. N-1 whose index is one: for operands
/// that must be part of an instruction, which an unrolled run-time loop cannot express.
template <int N>
struct Int {
  static constexpr int value = N;
};
template <int N, class F>
__device__ __forceinline__ void static_for(const F& body) {
  if constexpr (N > 0) {
    static_for<N - 1>(body);
    body(Int<N - 1>{});
  }
}
