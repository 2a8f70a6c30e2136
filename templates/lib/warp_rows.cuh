// The rows of a staged tile to any places. Needs lib/smem_tile.cuh.

/// store_tile with place(row) as the first byte of each row; nullptr: the row is not stored.
template <class Layout, int kRows, class Place>
__device__ __forceinline__ void store_rows(unsigned stage, int chunks, int lane, const Place& place) {
  constexpr int kChunks = Layout::kChunks;
#pragma unroll
  for (int i = 0; i < kRows * kChunks / 32; ++i) {
    const int row = (i * 32 + lane) / kChunks, chunk = (i * 32 + lane) % kChunks;
    uint4 data;
    asm volatile("ld.shared.v4.b32 { %0, %1, %2, %3}, [%4];"
                 : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                 : "r"(stage + Layout::offset(row, chunk))
                 : "memory");
    char* const to = place(row);
    if (to && chunk < chunks) *reinterpret_cast<uint4*>(to + chunk * 16) = data;
  }
}
