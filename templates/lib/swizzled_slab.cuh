// Slabs of 16-bit elements in shared memory: rows of 16, 32 or 64 columns, as wide as the swizzle with which TMA writes
// them. A wider tile is several slabs. Two elements of 8 bits count as one column. Needs lib/wgmma.cuh.

template <int kSlabColumns>
struct SwizzledSlab {
  static constexpr int kColumns = kSlabColumns, kPitch = 2 * kColumns;  ///< bytes from row to row: 32, 64 or 128
  static constexpr int kChunks = kColumns / 8;                          ///< of 16 bytes in a row
  static constexpr unsigned long long kMode = kPitch == 128 ? 1 : kPitch == 64 ? 2 : 3;
  static_assert(kPitch == 128 || kPitch == 64 || kPitch == 32, "no such swizzle");

  /// Byte offset of a chunk: the swizzle XORs its number with bits 7 and up of the address.
  static __device__ __forceinline__ constexpr int offset(int row, int chunk) {
    return row * kPitch + (chunk ^ (row * kPitch / 128) % kChunks) * 16;
  }
  static __device__ __forceinline__ constexpr unsigned offset(unsigned row, unsigned chunk) {
    return row * kPitch + (chunk ^ (row * kPitch / 128) % kChunks) * 16;
  }
  /// Descriptor of an operand whose rows are contiguous along k; 16 columns of k further on are 32 bytes.
  static __device__ __forceinline__ unsigned long long along_k(unsigned address) { return descriptor(address, 16); }
  /// Descriptor of an operand whose rows are contiguous along m or n, of which the next slab is `slab_bytes` away; 16
  /// rows of k further on are 16 rows.
  static __device__ __forceinline__ unsigned long long across_k(unsigned address, int slab_bytes) {
    return descriptor(address, slab_bytes);
  }

 private:
  /// PTX ISA, Matrix Descriptor. Both uses have 8 rows as the stride.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned address, int leading) {
    return kMode << 62 | static_cast<unsigned long long>(8 * kPitch >> 4) << 32 |
           static_cast<unsigned long long>(leading >> 4) << 16 | (address & 0x3ffffu) >> 4;
  }
};
__device__ __forceinline__ void store_shared_32(unsigned to, unsigned word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void store_shared_8(unsigned to, uint2 words) {
  asm volatile("st.shared.v2.b32 [%0], { %1, %2};" ::"r"(to), "r"(words.x), "r"(words.y) : "memory");
}
__device__ __forceinline__ void store_shared_16(unsigned to, uint4 words) {
  asm volatile("st.shared.v4.b32 [%0], { %1, %2, %3, %4};" ::"r"(to), "r"(words.x), "r"(words.y), "r"(words.z),
               "r"(words.w)
               : "memory");
}
__device__ __forceinline__ uint4 load_shared_16(unsigned from) {
  uint4 words;
  asm volatile("ld.shared.v4.b32 { %0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(from)
               : "memory");
  return words;
}
