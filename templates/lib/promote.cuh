// Promotion of partial sums. For 8-bit floating-point operands wgmma keeps only 13 fraction bits of its sums (PyTorch's
// study of H100 sums of e4m3 products, and DeepSeek-V3, section 3.3.2, which proposes this remedy): a long sum loses
// the products that are small beside it. A short partial sum is therefore added to a sum in fp32 by the CUDA cores.

/// sum += part.
template <int N>
__device__ __forceinline__ void promote(float (&sum)[N][4], const float (&part)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[j][e] += part[j][e];
}
/// sum += scale * part, with a scale for each of the lane's two rows (lib/wgmma.cuh: g and g + 8).
template <int N>
__device__ __forceinline__ void promote(float (&sum)[N][4], const float (&part)[N][4], const float (&scale)[2]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[j][e] = __fmaf_rn(scale[e / 2], part[j][e], sum[j][e]);
}
