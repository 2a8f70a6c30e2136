// One mma step of an operand is 32 bytes along k for every element size: 16 x 16 bits, 8 x 32 bits or 32 x 8 bits. Its
// fragments therefore have the same layout in memory, and ldmatrix, which moves 16-byte rows, loads all of them:
//   A  a0 (g, bytes 4t..) a1 (g + 8, 4t..) a2 (g, 16 + 4t..) a3 (g + 8, 16 + 4t..)
//   B  b0 (bytes 4t.., g) b1 (16 + 4t.., g)
// Needs lib/mma.cuh and lib/convert.cuh.

/// Selects the tf32 instruction; in memory its elements are fp32, of which the upper 19 bits are used.
struct Tf32 {};

/// c += a * b over 32 bytes of k; C is 16 x 8 of fp32, or int32 for int8.
template <class T, class Accumulator>
__device__ __forceinline__ void mma_32_bytes(Accumulator (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  mma_m16n8k16<T>(c, a, b0, b1);
}
template <>
__device__ __forceinline__ void mma_32_bytes<Tf32>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
      "{ %0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_32_bytes<Fp8>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
      "{ %0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_32_bytes<signed char>(int (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                          unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
      "{ %0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
