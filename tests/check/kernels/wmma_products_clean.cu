// Warps multiply tiles of halves with wmma, through shared memory with padded rows, and accumulate into C.
// grid: 2,2  block: 64
// args: [{"type": "f16", "size": 2048, "fill": 1}, {"type": "f16", "size": 2048, "fill": 0.5}, {"type": "f32", "size": 4096, "fill": 3, "expect": 19}, {"type": "i32", "value": 32}]
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void multiply(const half* a, const half* b, float* c, int k) {  // 64 x k, k x 64
  __shared__ __align__(32) half tile[32][24];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = 32 * blockIdx.y + 16 * warp;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
  for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(sum[j], c + row * 64 + 32 * blockIdx.x + 16 * j, 64, wmma::mem_row_major);
  for (int at = 0; at < k; at += 16) {
    for (int i = lane; i < 256; i += 32) tile[16 * warp + i / 16][i % 16] = a[(row + i / 16) * k + at + i % 16];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::load_matrix_sync(left, &tile[16 * warp][0], 24);
    for (int j = 0; j < 2; ++j) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
      wmma::load_matrix_sync(right, b + at * 64 + 32 * blockIdx.x + 16 * j, 64);
      wmma::mma_sync(sum[j], left, right, sum[j]);
    }
    __syncwarp();
  }
  for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(c + row * 64 + 32 * blockIdx.x + 16 * j, sum[j], 64, wmma::mem_row_major);
}
