// Warpgroup matrix instructions (wgmma, sm_90a; lib/wgmma.jinja has the products): four warps multiply 64 rows of A
// with n columns of B, 32 bytes along k at a time. Warp w has rows 16 w to 16 w + 15 of the sum; lane l of it, with
// g = l / 4 and t = l % 4, has d[j][0], d[j][1] in row g, columns 8 j + 2 t and the next, and d[j][2], d[j][3] in row
// g + 8: the layout of mma.sync. Two neighbouring 8 x 8 blocks of a sum, packed to 16 bits, form an A fragment.
//
// The products are asynchronous: between wgmma_fence and a wgmma_wait that covers their batch, sums and A fragments
// must not be touched. hold() keeps the compiler from moving accesses across.

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Leaves at most the kPending newest batches in flight.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
template <int N>
__device__ __forceinline__ void hold(float (&d)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
}
template <int N>
__device__ __forceinline__ void hold(int (&d)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(d[j][e])::"memory");
}
template <int N>
__device__ __forceinline__ void hold(unsigned (&d)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(d[j][e])::"memory");
}

/// Descriptor of an operand in shared memory that TMA has written with a swizzle of 128 bytes, and whose tiles begin at
/// multiples of 1024 bytes (PTX ISA, Matrix Descriptor). Rows of 128 bytes along k: `stride` is the distance of 8 rows,
/// 1024; a step of 32 bytes along k adds 32 bytes to the address. Rows of 128 bytes along m or n: `stride` is the
/// distance of 8 rows of k, 1024, and `leading` that of 64 elements of m or n; a step of 16 rows adds 2048 bytes.
__device__ __forceinline__ unsigned long long descriptor_128(unsigned address, int leading = 16, int stride = 1024) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  return kSwizzle128 | static_cast<unsigned long long>(stride >> 4) << 32 |
         static_cast<unsigned long long>(leading >> 4) << 16 | (address & 0x3ffffu) >> 4;
}
/// The same operand `bytes` further on, inside the same tile or a whole number of tiles.
__device__ __forceinline__ constexpr unsigned long long moved(unsigned long long descriptor, int bytes) {
  return descriptor + static_cast<unsigned long long>(bytes >> 4);
}

/// Registers per thread of the executing warpgroup (a multiple of 8 from 24 to 256); all its warps execute it.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
