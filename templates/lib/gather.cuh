// Tiles whose rows have no constant distance in global memory. Needs lib/smem_tile.cuh.

/// One column group of gather().
template <bool kWhole, class Layout, int kRows, int kThreads, int kWidth, int kFirst, int kBlocks, class Source,
          class Valid>
__device__ __forceinline__ void gather_group(const ColumnGroup<Layout, kRows, kThreads, kWidth, kFirst, kBlocks>& group,
                                             unsigned tile, const Source& source, const Valid& valid) {
  constexpr int kRowsPerPass = kThreads / kWidth;
  static_for<ceil_div(kRows, kRowsPerPass)>([&](auto pass) {
    constexpr int kFirstRow = decltype(pass)::value * kRowsPerPass;
    const int row = group.row + kFirstRow;
    if (kFirstRow + kRowsPerPass <= kRows || row < kRows) {
      bool any = kWhole;
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) any |= valid(row, group.chunk + i * kWidth);
      const char* from = any ? source(row) + group.chunk * 16 : nullptr;
      static_for<kBlocks>([&](auto block) {
        constexpr int kChunk = decltype(block)::value * kWidth;
        const unsigned to = tile + group.to + kFirstRow * Layout::kPitch;
        if constexpr (kWhole)
          cp_async_16<kChunk * 16>(to, from);
        else
          cp_async_16_or_zero<kChunk * 16>(to, from, valid(row, group.chunk + kChunk) ? 16 : 0);
      });
    }
  });
}

/// TileCopy::copy with any place for each row: source(row) is its first byte. Chunks for which valid(row, chunk) is
/// false become zeros; source(row) is asked for rows with a valid chunk only. kWhole: all chunks are valid.
template <bool kWhole, class Layout, int kRows, int kThreads, class Source, class Valid>
__device__ __forceinline__ void gather(const TileCopy<Layout, kRows, kThreads>& to, unsigned tile, const Source& source,
                                       const Valid& valid) {
  if constexpr (Layout::kChunks >= 8) gather_group<kWhole>(to.eights, tile, source, valid);
  if constexpr (Layout::kChunks & 4) gather_group<kWhole>(to.four, tile, source, valid);
  if constexpr (Layout::kChunks & 2) gather_group<kWhole>(to.two, tile, source, valid);
}
