// Conversion between elements of every format in memory and floats. Needs lib/math.cuh.
//   using In = Element_bf16;                  its name is the dtype's
//   float x[8]; load_as<In, 8>(from, x);      one access of 8 * sizeof(In) bytes, or accesses of 16
//   store_as<Out, 8>(to, x);                  rounds to nearest even; int8, int32 and fp8 saturate
// An address must be a multiple of min(16, bytes). Pointers may be to global or shared memory.

/// e4m3: bias 7, largest value 448, NaN 0x7f, no infinity.
struct Fp8 {
  unsigned char bits;
};
using Element_bf16 = Bf16;
using Element_fp16 = Fp16;
using Element_fp32 = float;
using Element_tf32 = float;  // in memory; the tensor cores read the upper 19 bits
using Element_fp8 = Fp8;
using Element_int8 = signed char;
using Element_int32 = int;

/// One 32-bit word of elements; a shorter vector fills its lower part.
template <class T>
struct Word {
  static constexpr int kElements = 4 / sizeof(T);
  static __device__ __forceinline__ void unpack(unsigned word, float* x) {
    const float2 pair = unpack2<T>(word);
    x[0] = pair.x;
    x[1] = pair.y;
  }
  static __device__ __forceinline__ unsigned pack(const float* x) { return pack2<T>(x[0], x[1]); }
};
template <>
struct Word<float> {
  static constexpr int kElements = 1;
  static __device__ __forceinline__ void unpack(unsigned word, float* x) { x[0] = __uint_as_float(word); }
  static __device__ __forceinline__ unsigned pack(const float* x) { return __float_as_uint(x[0]); }
};
template <>
struct Word<int> {
  static constexpr int kElements = 1;
  static __device__ __forceinline__ void unpack(unsigned word, float* x) {
    x[0] = static_cast<float>(static_cast<int>(word));
  }
  static __device__ __forceinline__ unsigned pack(const float* x) {
    return static_cast<unsigned>(__float2int_rn(x[0]));
  }
};
template <>
struct Word<signed char> {
  static constexpr int kElements = 4;
  static __device__ __forceinline__ void unpack(unsigned word, float* x) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(static_cast<signed char>(word >> 8 * i));
  }
  static __device__ __forceinline__ unsigned pack(const float* x) {
    unsigned upper, word;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(upper) : "r"(__float2int_rn(x[3])), "r"(__float2int_rn(x[2])));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;"
        : "=r"(word)
        : "r"(__float2int_rn(x[1])), "r"(__float2int_rn(x[0])), "r"(upper));
    return word;
  }
};

#if __CUDA_ARCH__ >= 890
__device__ __forceinline__ unsigned pack2_fp8(float lo, float hi) {
  unsigned short r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(hi), "f"(lo));
  return r;
}
__device__ __forceinline__ float2 unpack2_fp8(unsigned pair) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(pair)));
  return unpack2<Fp16>(halves);
}
#else
/// Without the instruction: below 2^-6 a sum with 2^14 has the spacing of fp8; above, bits are rounded off.
__device__ __forceinline__ unsigned round_fp8(float x) {
  const unsigned sign = __float_as_uint(x) >> 24 & 0x80u;
  const float a = fminf(fabsf(x), 448.0f);
  const unsigned bits = __float_as_uint(a);
  const unsigned normal = ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - (120u << 3);
  const unsigned subnormal = __float_as_uint(a + 16384.0f) - __float_as_uint(16384.0f);
  return x != x ? 0x7fu : sign | (a < 0.015625f ? subnormal : normal);
}
__device__ __forceinline__ unsigned pack2_fp8(float lo, float hi) { return round_fp8(lo) | round_fp8(hi) << 8; }
/// fp8 bits in the positions of fp16 are the number divided by 2^8.
__device__ __forceinline__ float2 unpack2_fp8(unsigned pair) {
  const unsigned halves = (pair & 0x80u) << 8 | (pair & 0x7fu) << 7 | (pair & 0x8000u) << 16 | (pair & 0x7f00u) << 15;
  const float2 scaled = unpack2<Fp16>(halves);
  const float nan = __uint_as_float(0x7fffffffu);
  return {(pair & 0x7fu) == 0x7fu ? nan : scaled.x * 256.0f, (pair & 0x7f00u) == 0x7f00u ? nan : scaled.y * 256.0f};
}
#endif
template <>
struct Word<Fp8> {
  static constexpr int kElements = 4;
  static __device__ __forceinline__ void unpack(unsigned word, float* x) {
    const float2 lower = unpack2_fp8(word & 0xffffu), upper = unpack2_fp8(word >> 16);
    x[0] = lower.x;
    x[1] = lower.y;
    x[2] = upper.x;
    x[3] = upper.y;
  }
  static __device__ __forceinline__ unsigned pack(const float* x) {
    return pack2_fp8(x[0], x[1]) | pack2_fp8(x[2], x[3]) << 16;
  }
};

/// kBytes in as few accesses as possible: kBytes is 1, 2, 4, 8, 16 or a multiple of 16.
template <int kBytes>
__device__ __forceinline__ void load_words(const void* from, unsigned* w) {
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes % 16 == 0, "no single access");
  if constexpr (kBytes == 1) w[0] = *static_cast<const unsigned char*>(from);
  if constexpr (kBytes == 2) w[0] = *static_cast<const unsigned short*>(from);
  if constexpr (kBytes == 4) w[0] = *static_cast<const unsigned*>(from);
  if constexpr (kBytes == 8) {
    const uint2 v = *static_cast<const uint2*>(from);
    w[0] = v.x;
    w[1] = v.y;
  }
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const uint4 v = static_cast<const uint4*>(from)[i];
      w[4 * i] = v.x;
      w[4 * i + 1] = v.y;
      w[4 * i + 2] = v.z;
      w[4 * i + 3] = v.w;
    }
  }
}
template <int kBytes>
__device__ __forceinline__ void store_words(void* to, const unsigned* w) {
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes % 16 == 0, "no single access");
  if constexpr (kBytes == 1) *static_cast<unsigned char*>(to) = static_cast<unsigned char>(w[0]);
  if constexpr (kBytes == 2) *static_cast<unsigned short*>(to) = static_cast<unsigned short>(w[0]);
  if constexpr (kBytes == 4) *static_cast<unsigned*>(to) = w[0];
  if constexpr (kBytes == 8) *static_cast<uint2*>(to) = {w[0], w[1]};
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i)
      static_cast<uint4*>(to)[i] = {w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
  }
}

/// N elements between words and floats; a last word may be partly filled.
template <class T, int N>
__device__ __forceinline__ void unpack_as(const unsigned* w, float (&x)[N]) {
  constexpr int kPer = Word<T>::kElements;
#pragma unroll
  for (int i = 0; i < N; i += kPer) {
    float part[kPer];
    Word<T>::unpack(w[i / kPer], part);
#pragma unroll
    for (int j = 0; j < kPer && i + j < N; ++j) x[i + j] = part[j];
  }
}
template <class T, int N>
__device__ __forceinline__ void pack_as(const float (&x)[N], unsigned* w) {
  constexpr int kPer = Word<T>::kElements;
#pragma unroll
  for (int i = 0; i < N; i += kPer) {
    float part[kPer];
#pragma unroll
    for (int j = 0; j < kPer; ++j) part[j] = i + j < N ? x[i + j] : 0.0f;
    w[i / kPer] = Word<T>::pack(part);
  }
}

template <class T, int N>
__device__ __forceinline__ void load_as(const T* from, float (&x)[N]) {
  unsigned w[(N * sizeof(T) + 3) / 4];
  load_words<N* static_cast<int>(sizeof(T))>(from, w);
  unpack_as<T>(w, x);
}
template <class T, int N>
__device__ __forceinline__ void store_as(T* to, const float (&x)[N]) {
  unsigned w[(N * sizeof(T) + 3) / 4];
  pack_as<T>(x, w);
  store_words<N* static_cast<int>(sizeof(T))>(to, w);
}
template <class T>
__device__ __forceinline__ float load_as(const T* from) {
  float x[1];
  load_as<T, 1>(from, x);
  return x[0];
}
template <class T>
__device__ __forceinline__ void store_as(T* to, float x) {
  const float one[1] = {x};
  store_as<T, 1>(to, one);
}
