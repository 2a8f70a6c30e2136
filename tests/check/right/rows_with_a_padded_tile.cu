// grid: 2  block: 32,8
// args: [{"name": "x", "type": "f32", "size": 2048, "fill": "iota"}, {"name": "y", "type": "f32", "size": 2048}]
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  for (int r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = x[(blockIdx.x * 32 + r) * 32 + threadIdx.x];
  __syncthreads();
  for (int r = threadIdx.y; r < 32; r += 8) y[(blockIdx.x * 32 + r) * 32 + threadIdx.x] = tile[threadIdx.x][r];
}
