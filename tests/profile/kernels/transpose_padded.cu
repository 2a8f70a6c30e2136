// transpose_conflicts with a padded tile, and matrices that L2 does not hold.
// grid: 256,256  block: 32,8  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 67108864}, {"name": "y", "type": "f32", "size": 67108864}]
// limiter: DRAM bandwidth
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  const unsigned n = 8192, tx = threadIdx.x, ty = threadIdx.y;
  for (unsigned k = 0; k < 32; k += 8)
    tile[ty + k][tx] = x[(blockIdx.y * 32 + ty + k) * n + blockIdx.x * 32 + tx];  // <- here
  __syncthreads();
  for (unsigned k = 0; k < 32; k += 8) y[(blockIdx.x * 32 + ty + k) * n + blockIdx.y * 32 + tx] = tile[tx][ty + k];
}
