// grid: 2  block: 256
// args: [{"type": "f32", "size": 512, "fill": 1}, {"type": "f32", "size": 2, "expect": 256}]
// with reduce_no_barrier: race at 10
__global__ void sum(const float* x, float* y) {
  __shared__ float part[256];
  const int t = threadIdx.x;
  part[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
    // edit reduce_no_barrier:
  }
  if (t == 0) y[blockIdx.x] = part[0];
}
