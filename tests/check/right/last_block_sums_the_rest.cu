// grid: 6  block: 64  leaves open: orders
// args: [{"name": "x", "type": "f32", "size": 384, "fill": 1}, {"name": "part", "type": "f32", "size": 6}, {"name": "done", "type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "f32", "size": 1, "expect": 384}]
__global__ void sum(const float* x, float* part, unsigned* done, float* y) {
  __shared__ float s[64];
  __shared__ bool last;
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s[0];
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += part[i];
    *y = all;
  }
}
