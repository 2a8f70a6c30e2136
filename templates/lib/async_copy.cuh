// cp.async: 16-byte copies from global to shared memory that bypass registers and L1. Batches are
// closed by commit; wait<N> leaves at most the N newest batches pending. Both are per thread: data
// of other threads is visible only after a barrier that follows their wait.

template <int kOffset>
__device__ __forceinline__ void cp_async_16(unsigned to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %2], 16;" ::"r"(to), "l"(from), "n"(kOffset) : "memory");
}
/// Copies `bytes` (0 or 16) and zero-fills the rest of the 16. With 0 bytes nothing is read.
template <int kOffset>
__device__ __forceinline__ void cp_async_16_or_zero(unsigned to, const char* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %3], 16, %2;" ::"r"(to), "l"(from), "r"(bytes), "n"(kOffset)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Copies `bytes` of a piece of 4, 8 or 16 bytes and zero-fills the rest. With 0 bytes nothing is read.
template <int kPiece, int kOffset>
__device__ __forceinline__ void cp_async_piece(unsigned to, const char* from, int bytes) {
  if constexpr (kPiece == 16)
    asm volatile("cp.async.cg.shared.global [%0 + %2], [%1], 16, %3;" ::"r"(to), "l"(from), "n"(kOffset), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0 + %2], [%1], %3, %4;" ::"r"(to), "l"(from), "n"(kOffset), "n"(kPiece),
                 "r"(bytes)
                 : "memory");
}
