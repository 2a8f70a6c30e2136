// grid: 1  block: 256
// args: [{"type": "i32", "size": 256, "fill": 1}, {"type": "i32", "size": 256}]
// finds: race at 10
__global__ void scan(const int* x, int* y) {
  __shared__ int part[256];
  const int t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    if (t >= step) part[t] += part[t - step];
    __syncthreads();
  }
  y[t] = part[t];
}
