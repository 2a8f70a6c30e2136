// The fragments of a warp of gemm/gemm.cu.jinja, from tiles of A or B in shared memory.

/// kTurned: the tile's rows are along k. kRight: the operand is B.
template <class Layout, bool kTurned, bool kRight>
struct WarpBlocks : BlockLoader<Layout, kTurned != kRight> {
  using Blocks = BlockLoader<Layout, kTurned != kRight>;
  /// `first`: of the warp's rows of A, or columns of B.
  __device__ __forceinline__ WarpBlocks(unsigned tiles, int first, int lane)
      : Blocks(kTurned ? tiles : tiles + first * Layout::kPitch, lane, kTurned ? first / 8 : 0) {}
  __device__ __forceinline__ WarpBlocks(const Blocks& blocks) : Blocks(blocks) {}
  /// Sixteen rows or columns, step kStep of k.
  template <int kBlock, int kStep>
  __device__ __forceinline__ void load_along(unsigned (&r)[4]) const {
    if constexpr (kTurned)
      this->template load_transposed<16 * kStep, kBlock>(r, 0);
    else
      this->template load<16 * kBlock, kStep>(r, 0);
  }
};

template <class T>
__device__ __forceinline__ void clear(T (&c)[MT][NT][4]) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) c[i][j][e] = 0;
}
