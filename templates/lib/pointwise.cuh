// The functions of formulas (docs/use/epilogues.md): <name>_fast for outputs of 16 bits and less, <name>_exact for
// wider ones. Their error bounds are in generator/pointwise/functions.cpp; all propagate NaN. Needs math.cuh.

/// The larger and the smaller of two; NaN if either is.
__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

/// Python's // and %: rounded down, with the sign of the divisor.
__device__ __forceinline__ int floor_div(int a, int b) { return a / b - (a % b != 0 && (a ^ b) < 0); }
__device__ __forceinline__ int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }

__device__ __forceinline__ float tanh_fast(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float tanh_exact(float x) { return tanhf(x); }

__device__ __forceinline__ float rcp_fast(float x) { return rcp_approx(x); }
__device__ __forceinline__ float rcp_exact(float x) { return rcp_approx(x); }

__device__ __forceinline__ float exp_fast(float x) { return ex2(x * kLog2e); }
/// The rounding errors of x log2(e) and of log2(e) itself are corrected by a factor 1 + lost ln 2. Beyond the clamp the
/// result is 0 or infinity; the clamp avoids the NaN remainder of an infinite x.
__device__ __forceinline__ float exp_exact(float x) {
  x = max_nan(min_nan(x, 128.0f), -128.0f);
  const float product = x * kLog2e;
  const float lost = fmaf(x, 1.92596299e-8f, fmaf(x, kLog2e, -product));
  return ex2(product) * fmaf(lost, kLn2, 1.0f);
}

__device__ __forceinline__ float log_fast(float x) {
  float r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r * kLn2;
}
__device__ __forceinline__ float log_exact(float x) { return logf(x); }

__device__ __forceinline__ float sqrt_fast(float x) {
  float r;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float sqrt_exact(float x) { return sqrt_fast(x); }

__device__ __forceinline__ float rsqrt_fast(float x) {
  float r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float rsqrt_exact(float x) { return rsqrt_fast(x); }

__device__ __forceinline__ float abs_fast(float x) { return fabsf(x); }
__device__ __forceinline__ float abs_exact(float x) { return fabsf(x); }
__device__ __forceinline__ float erf_fast(float x) { return erff(x); }
__device__ __forceinline__ float erf_exact(float x) { return erff(x); }
__device__ __forceinline__ float relu_fast(float x) { return max_nan(x, 0.0f); }
__device__ __forceinline__ float relu_exact(float x) { return max_nan(x, 0.0f); }

/// 1 / (1 + e^-x) = (1 + tanh(x/2)) / 2.
__device__ __forceinline__ float sigmoid_fast(float x) { return fmaf(0.5f, tanh_fast(0.5f * x), 0.5f); }
__device__ __forceinline__ float sigmoid_exact(float x) { return rcp_approx(1.0f + ex2(x * -kLog2e)); }

__device__ __forceinline__ float silu_fast(float x) {
  const float half = 0.5f * x;
  return fmaf(half, tanh_fast(half), half);
}
__device__ __forceinline__ float silu_exact(float x) { return x * sigmoid_exact(x); }

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
__device__ __forceinline__ float gelu_tanh_fast(float x) {
  const float half = 0.5f * x;
  const float inner = x * fmaf(x * x, 0.035677408136300125f, 0.79788456080286536f);
  return fmaf(half, tanh_fast(inner), half);
}
/// The same as x / (1 + e^(-2 inner)), which does not cancel below zero.
__device__ __forceinline__ float gelu_tanh_exact(float x) {
  return x * rcp_approx(1.0f + ex2(x * fmaf(x * x, -0.10294324f, -2.3022082f)));
}

/// x (1 + erf(x / sqrt 2)) / 2, with erf(x / sqrt 2) as tanh(x P(x^2)): P minimises the largest error of the product,
/// 2.6e-5. Its argument ends at 4, where tanh is 1 for every format this is used for.
__device__ __forceinline__ float gelu_fast(float x) {
  const float half = 0.5f * x, square = min_nan(x * x, 16.0f);
  const float inner = x * fmaf(fmaf(square, -3.515978069e-4f, 0.03700601816f), square, 0.7975075723f);
  return fmaf(half, tanh_fast(inner), half);
}
/// x Phi(x). Phi(-|x|) = e^(-x^2/2) t Q(t) with t = 1 / (1 + 0.35 |x|); Q, of degree 8, minimises the largest relative
/// error, 3.2e-8. No cancellation on either side of zero.
__device__ __forceinline__ float gelu_exact(float x) {
  const float t = rcp_approx(fmaf(fabsf(x), 0.35f, 1.0f));
  float q = -0.02914671005f;
  q = fmaf(q, t, 0.1439753962f);
  q = fmaf(q, t, -0.2557216637f);
  q = fmaf(q, t, 0.1591823155f);
  q = fmaf(q, t, -0.02311520327f);
  q = fmaf(q, t, 0.1055101569f);
  q = fmaf(q, t, 0.1198323567f);
  q = fmaf(q, t, 0.139861935f);
  q = fmaf(q, t, 0.1396214009f);
  const float tail = q * t * ex2(x * x * (-0.5f * kLog2e));
  return x * (x > 0.0f ? 1.0f - tail : tail);
}

// Rounding to a format and back.
__device__ __forceinline__ float cast_bf16(float x) { return __uint_as_float(pack2<Bf16>(x, 0.0f) << 16); }
__device__ __forceinline__ float cast_fp16(float x) { return unpack2<Fp16>(pack2<Fp16>(x, 0.0f)).x; }
/// e4m3 has 3 bits after the leading one, down to 2^-9, and ends at 448. Adding 1.5 x 2^23 of the last bit's unit
/// leaves no bits below it: the same on every architecture.
__device__ __forceinline__ float cast_fp8(float x) {
  const float a = min_nan(fabsf(x), 448.0f);
  const int exponent = max(__float_as_int(a) >> 23, 121);  // biased; 121 is the smallest normal number, 2^-6
  const float magic = __int_as_float((exponent + 20) << 23) * 1.5f;
  return copysignf((a + magic) - magic, x);
}
__device__ __forceinline__ float cast_int8(float x) { return rintf(max_nan(min_nan(x, 127.0f), -128.0f)); }
