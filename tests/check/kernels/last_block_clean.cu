// grid: 8  block: 64
// args: [{"type": "f32", "size": 512, "fill": 1}, {"type": "f32", "size": 8}, {"type": "u32", "size": 1, "fill": 0, "expect": 0}, {"name": "y", "type": "f32", "size": 1, "expect": 512}]
// leaves open: orders
__global__ void sum(const float* x, float* parts, unsigned* done, float* y) {
  __shared__ float part[64];
  __shared__ bool last;
  const int t = threadIdx.x;
  part[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += *static_cast<volatile float*>(parts + i);
    *y = sum;
  }
}
