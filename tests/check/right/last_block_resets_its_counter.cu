// grid: 5  block: 32  leaves open: orders
// args: [{"name": "x", "type": "f32", "size": 160, "fill": 1}, {"name": "part", "type": "f32", "size": 5}, {"name": "left", "type": "u32", "size": 1, "fill": 0, "expect": 0}, {"name": "y", "type": "f32", "size": 1, "expect": 160}]
__global__ void sum(const float* x, volatile float* part, unsigned* left, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  unsigned ticket = 0;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = v;
    __threadfence();
    ticket = atomicInc(left, gridDim.x - 1);
  }
  if (__shfl_sync(~0u, ticket, 0) != gridDim.x - 1) return;
  v = threadIdx.x < gridDim.x ? part[threadIdx.x] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x == 0) *y = v;
}
