// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 12, race at 13
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  if (t < 32) {
    int sum = s[t] + s[t + 32];
    for (int step = 16; step > 0; step /= 2) {
      s[t] = sum;
      if (t < step) sum += s[t + step];
    }
    if (t == 0) y[0] = sum;
  }
}
