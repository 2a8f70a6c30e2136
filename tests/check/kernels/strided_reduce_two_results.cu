// grid: 2  block: 64
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 1}]
// finds: race at 12
__global__ void sum(const float* x, float* y) {
  __shared__ float part[64];
  part[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) *y = part[0];
}
