// grid: 2  block: 64
// args: [{"name": "x", "type": "f32", "size": 128, "fill": 1}, {"name": "y", "type": "f32", "size": 4, "expect": 32}]
__global__ void sum(const float* x, float* y) {
  __shared__ float part[64];
  const int lane = threadIdx.x & 31;
  float* mine = part + (threadIdx.x & ~31);
  mine[lane] = x[blockIdx.x * 64 + threadIdx.x];
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    const float v = lane < d ? mine[lane + d] : 0;
    __syncwarp();
    if (lane < d) mine[lane] += v;
    __syncwarp();
  }
  if (lane == 0) y[blockIdx.x * 2 + threadIdx.x / 32] = mine[0];
}
