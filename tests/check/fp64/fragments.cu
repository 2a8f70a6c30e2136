// grid: 1  block: 32
// Products of fragments of f16 and tf32, rounded from 1.1 x: a b and a a, with a row by row and the other by columns. The
// sum of the first elements of both is of halves in pairs.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void products(const float* x, float* halves, float* tf32, __half2* sums) {
  __shared__ __align__(32) __half a[256], b[256];
  __shared__ __align__(32) float f[256];
  __shared__ __half2 sum;
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) {
    a[i] = __float2half(x[i] * 1.1f), b[i] = __float2half(x[i + 256] * 1.1f);
    f[i] = x[i] * 1.1f;
  }
  if (lane == 0) sum = __floats2half2_rn(0, 0);
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> ha;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> hb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> hc;
  wmma::fill_fragment(hc, 0.0f);
  wmma::load_matrix_sync(ha, a, 16);
  wmma::load_matrix_sync(hb, b, 16);
  wmma::mma_sync(hc, ha, hb, hc);
  wmma::store_matrix_sync(halves, hc, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> ta;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> tb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> tc;
  wmma::fill_fragment(tc, 0.0f);
  for (int k = 0; k < 16; k += 8) {
    wmma::load_matrix_sync(ta, f + k, 16);
    wmma::load_matrix_sync(tb, f + k, 16);
    for (int i = 0; i < ta.num_elements; ++i) ta.x[i] = wmma::__float_to_tf32(ta.x[i]);
    for (int i = 0; i < tb.num_elements; ++i) tb.x[i] = wmma::__float_to_tf32(tb.x[i]);
    wmma::mma_sync(tc, ta, tb, tc);
  }
  wmma::store_matrix_sync(tf32, tc, 16, wmma::mem_row_major);
  atomicAdd(&sum, __halves2half2(a[lane], b[lane]));
  __syncwarp();
  if (lane == 0) sums[0] = sum;
}
