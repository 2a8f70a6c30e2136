// Integers of formulas (docs/use/epilogues.md): elements that load_as and store_as do not convert, and sums that wrap.
// Needs lib/convert.cuh.

/// A "float" has the bits of an int. int8 saturates when it is stored.
template <class T>
struct Whole {
  T value;
};
template <>
struct Word<Whole<int>> : Word<float> {};
template <>
struct Word<Whole<signed char>> {
  static constexpr int kElements = 4;
  static __device__ __forceinline__ void unpack(unsigned word, float* x) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = __int_as_float(static_cast<signed char>(word >> 8 * i));
  }
  static __device__ __forceinline__ unsigned pack(const float* x) {
    unsigned upper, word;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(upper) : "r"(__float_as_int(x[3])), "r"(__float_as_int(x[2])));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;"
        : "=r"(word)
        : "r"(__float_as_int(x[1])), "r"(__float_as_int(x[0])), "r"(upper));
    return word;
  }
};

__device__ __forceinline__ int wrapping_sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
__device__ __forceinline__ int wrapping_difference(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
__device__ __forceinline__ int wrapping_product(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
}
__device__ __forceinline__ int wrapping_negative(int a) { return static_cast<int>(0u - static_cast<unsigned>(a)); }
