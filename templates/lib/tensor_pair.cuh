// Tensors of any format as pairs of floats, two neighbours of a row at a time.

__device__ __forceinline__ float to_float(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ __forceinline__ float to_float(Fp16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(int x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(Int8 x) { return static_cast<float>(x.value); }

/// p[0] and p[1], p being aligned to both.
__device__ __forceinline__ float2 read_two(const Bf16* p) {
  return unpack2<Bf16>(*reinterpret_cast<const unsigned*>(p));
}
__device__ __forceinline__ float2 read_two(const Fp16* p) {
  return unpack2<Fp16>(*reinterpret_cast<const unsigned*>(p));
}
__device__ __forceinline__ float2 read_two(const float* p) { return *reinterpret_cast<const float2*>(p); }
__device__ __forceinline__ float2 read_two(const int* p) {
  const int2 x = *reinterpret_cast<const int2*>(p);
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
__device__ __forceinline__ float2 read_two(const Int8* p) { return {to_float(p[0]), to_float(p[1])}; }

/// Two neighbours in the format of T, as they lie in memory.
template <class T>
struct Pair {
  unsigned bits;
  __device__ __forceinline__ Pair(float lo, float hi) : bits(pack2<T>(lo, hi)) {}
  __device__ __forceinline__ void write(T* to) const { *reinterpret_cast<unsigned*>(to) = bits; }
  __device__ __forceinline__ void write_one(T* to, int which) const {
    to->bits = static_cast<unsigned short>(bits >> (16 * which));
  }
  __device__ __forceinline__ void stage(unsigned at) const {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(bits) : "memory");
  }
  __device__ __forceinline__ void stage_one(unsigned at) const {
    asm volatile("{ .reg .b16 lo, hi; mov.b32 { lo, hi}, %1; st.shared.b16 [%0], lo; }" ::"r"(at), "r"(bits) : "memory");
  }
};
template <>
struct Pair<float> {
  float lo, hi;
  __device__ __forceinline__ Pair(float lo, float hi) : lo(lo), hi(hi) {}
  __device__ __forceinline__ void write(float* to) const { *reinterpret_cast<float2*>(to) = {lo, hi}; }
  __device__ __forceinline__ void write_one(float* to, int which) const { *to = which ? hi : lo; }
  __device__ __forceinline__ void stage(unsigned at) const {
    asm volatile("st.shared.v2.f32 [%0], { %1, %2};" ::"r"(at), "f"(lo), "f"(hi) : "memory");
  }
  __device__ __forceinline__ void stage_one(unsigned at) const {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(lo) : "memory");
  }
};
template <>
struct Pair<int> {
  int lo, hi;
  __device__ __forceinline__ static int round(float x) {
    int r;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r) : "f"(x));  // saturates
    return r;
  }
  __device__ __forceinline__ Pair(float lo, float hi) : lo(round(lo)), hi(round(hi)) {}
  __device__ __forceinline__ Pair(int lo, int hi) : lo(lo), hi(hi) {}
  __device__ __forceinline__ void write(int* to) const { *reinterpret_cast<int2*>(to) = {lo, hi}; }
  __device__ __forceinline__ void write_one(int* to, int which) const { *to = which ? hi : lo; }
  __device__ __forceinline__ void stage(unsigned at) const {
    asm volatile("st.shared.v2.b32 [%0], { %1, %2};" ::"r"(at), "r"(lo), "r"(hi) : "memory");
  }
  __device__ __forceinline__ void stage_one(unsigned at) const {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(lo) : "memory");
  }
};
template <>
struct Pair<Int8> {
  int bits;  // of both, 8 each
  __device__ __forceinline__ static int round(float x) {
    int r;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
  }
  __device__ __forceinline__ Pair(float lo, float hi) : bits((round(lo) & 0xff) | round(hi) << 8) {}
  __device__ __forceinline__ void write(Int8* to) const { *reinterpret_cast<short*>(to) = static_cast<short>(bits); }
  __device__ __forceinline__ void write_one(Int8* to, int which) const {
    to->value = static_cast<signed char>(bits >> (8 * which));
  }
  __device__ __forceinline__ void stage(unsigned at) const {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(at), "h"(static_cast<short>(bits)) : "memory");
  }
  __device__ __forceinline__ void stage_one(unsigned at) const {
    asm volatile("st.shared.b8 [%0], %1;" ::"r"(at), "r"(bits) : "memory");
  }
};
#if __CUDA_ARCH__ >= 890
template <>
struct Pair<Fp8> {
  unsigned short bits;  // of both, 8 each
  __device__ __forceinline__ Pair(float lo, float hi) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(hi), "f"(lo));
  }
  __device__ __forceinline__ void write(Fp8* to) const { *reinterpret_cast<unsigned short*>(to) = bits; }
  __device__ __forceinline__ void write_one(Fp8* to, int which) const {
    to->bits = static_cast<unsigned char>(bits >> (8 * which));
  }
  __device__ __forceinline__ void stage(unsigned at) const {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(at), "h"(bits) : "memory");
  }
  __device__ __forceinline__ void stage_one(unsigned at) const {
    asm volatile("st.shared.b8 [%0], %1;" ::"r"(at), "r"(static_cast<unsigned>(bits)) : "memory");
  }
};
__device__ __forceinline__ float2 read_two(const Fp8* p) {
  float2 r;
  asm("{ .reg .b32 both; .reg .b16 lo, hi; cvt.rn.f16x2.e4m3x2 both, %2; mov.b32 { lo, hi}, both; cvt.f32.f16 %0, lo; "
      "cvt.f32.f16 %1, hi; }"
      : "=f"(r.x), "=f"(r.y)
      : "h"(*reinterpret_cast<const unsigned short*>(p)));
  return r;
}
__device__ __forceinline__ float to_float(Fp8 x) {
  float r;
  asm("{ .reg .b32 both; .reg .b16 lo, hi; cvt.rn.f16x2.e4m3x2 both, %1; mov.b32 { lo, hi}, both; cvt.f32.f16 %0, lo; }"
      : "=f"(r)
      : "h"(static_cast<unsigned short>(x.bits)));
  return r;
}
#endif

/// Two values of a row of a tensor. kTogether: they lie in one aligned word; else `second` is 1 or, past the end, 0.
template <bool kTogether, class T>
__device__ __forceinline__ float2 read_pair(const T* p, int second) {
  if constexpr (kTogether)
    return read_two(p);
  else
    return {to_float(p[0]), to_float(p[second])};
}
