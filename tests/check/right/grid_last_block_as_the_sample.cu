// grid: 6  block: 64
// args: [{"type": "f32", "size": 384, "fill": 1}, {"type": "f32", "size": 6}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "f32", "size": 1, "expect": 384}]
__global__ void sum(const float* x, float* parts, unsigned* done, float* y) {
  __shared__ bool last;
  float v = x[blockIdx.x * 64 + threadIdx.x];
  __shared__ float part[64];
  part[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 64; ++i) v += part[i];
    parts[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
    *y = sum;
    *done = 0;
  }
}
