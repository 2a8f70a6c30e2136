// Stores accumulators with 16-byte accesses: a warp scales and rounds them, writes them to its part of shared memory
// and copies pieces of 16 bytes to global memory. No barrier of the CTA is needed.

/// Writes 16 MT x 8 NT accumulators, row h of m-tile i times factor[i][h], to a tile at `stage`.
template <class T, class Layout, int MT, int NT>
__device__ __forceinline__ void stage_tile(const float (&c)[MT][NT][4], const float (&factor)[MT][2], unsigned stage,
                                           int lane) {
  static_assert(NT == Layout::kChunks, "one chunk per n8 tile");
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const unsigned pair = pack2<T>(c[i][n][2 * h] * factor[i][h], c[i][n][2 * h + 1] * factor[i][h]);
        const unsigned address = stage + Layout::offset(16 * i + 8 * h + lane / 4, n) + lane % 4 * 4;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(pair) : "memory");
      }
}

/// Copies the first `chunks` chunks of the first `rows` of kRows rows from a staged tile to global memory. kWhole: the
/// whole tile.
template <class Layout, int kRows, bool kWhole>
__device__ __forceinline__ void store_tile(unsigned stage, char* to, long long row_bytes, int rows, int chunks,
                                           int lane) {
  constexpr int kChunks = Layout::kChunks;
  // If a pass is whole rows, a lane keeps its column, and its pointer advances by a constant step.
  constexpr bool kRegular = 32 % kChunks == 0;
  char* p = to + lane / kChunks * row_bytes + lane % kChunks * 16;
#pragma unroll
  for (int i = 0; i < kRows * kChunks / 32; ++i) {
    const int row = (i * 32 + lane) / kChunks, chunk = (i * 32 + lane) % kChunks;
    uint4 data;
    asm volatile("ld.shared.v4.b32 { %0, %1, %2, %3}, [%4];"
                 : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                 : "r"(stage + Layout::offset(row, chunk))
                 : "memory");
    if constexpr (!kRegular) p = to + row * row_bytes + chunk * 16;
    if (kWhole || (row < rows && chunk < chunks)) *reinterpret_cast<uint4*>(p) = data;
    if constexpr (kRegular) p += 32 / kChunks * row_bytes;
  }
}
