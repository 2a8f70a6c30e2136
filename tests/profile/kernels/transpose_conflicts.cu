// The columns of a tile of 32 x 32 words lie in one bank: 32 wavefronts for each load.
// grid: 64,64  block: 32,8  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 4194304}, {"name": "y", "type": "f32", "size": 4194304}]
// limiter: throughput of shared memory
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][32];
  const unsigned n = 2048, tx = threadIdx.x, ty = threadIdx.y;
  for (unsigned k = 0; k < 32; k += 8) tile[ty + k][tx] = x[(blockIdx.y * 32 + ty + k) * n + blockIdx.x * 32 + tx];
  __syncthreads();
  for (unsigned k = 0; k < 32; k += 8)
    y[(blockIdx.x * 32 + ty + k) * n + blockIdx.y * 32 + tx] = tile[tx][ty + k];  // <- here
}
