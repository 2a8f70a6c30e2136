// Promotion of partial sums. For 8-bit floating-point operands wgmma keeps only 13 fraction bits of its sums (PyTorch's
// study of H100 sums of e4m3 products, and DeepSeek-V3, section 3.3.2, which proposes this remedy): a long sum loses
// the products that are small beside it. A short partial sum is therefore added to a sum in fp32 by the CUDA cores.

/// sum += part.
template <class T, int N>
__device__ __forceinline__ void promote(T (&sum)[N][4], const T (&part)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[j][e] += part[j][e];
}
/// sum += row_scale * col_scale * part. The lane has two rows (lib/wgmma.cuh: g and g + 8), and the columns are
/// kBlocks blocks of equal width.
template <int N, int kBlocks>
__device__ __forceinline__ void promote(float (&sum)[N][4], const float (&part)[N][4], const float (&row_scale)[2],
                                        const float (&col_scale)[kBlocks]) {
  static_assert(N % kBlocks == 0, "a block is whole tiles of eight columns");
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const float scale[2] = {row_scale[0] * col_scale[block], row_scale[1] * col_scale[block]};
#pragma unroll
    for (int j = N / kBlocks * block; j < N / kBlocks * (block + 1); ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[j][e] = __fmaf_rn(scale[e / 2], part[j][e], sum[j][e]);
  }
}

/// Scales of a GEMM's operands (docs/kernels/gemm.md): of A for each row and 128 elements of k, of B for 128 columns
/// and 128 elements of k. The lane's rows are row + kTileRows * i + 8 * h, its columns begin at col and are kBlocks
/// blocks of kColumns. Beyond the matrix the last scale is used.
template <int MT, int kTileRows, int kBlocks, int kColumns>
struct BlockScales {
  float of_rows[MT][2], of_cols[kBlocks];

  __device__ __forceinline__ void load(const float* a_scale, const float* b_scale, int row, int col, int M, int N,
                                       int k_blocks, int k_block) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        of_rows[i][h] = a_scale[min(row + kTileRows * i + 8 * h, M - 1) * static_cast<long long>(k_blocks) + k_block];
#pragma unroll
    for (int block = 0; block < kBlocks; ++block)
      of_cols[block] = b_scale[min(col + kColumns * block, N - 1) / 128 * static_cast<long long>(k_blocks) + k_block];
  }
};
