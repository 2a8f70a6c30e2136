// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ volatile int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  if (t < 32) {
    s[t] = s[t] + s[t + 32];
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
      const int v = s[t] + (t < step ? s[t + step] : 0);
      __syncwarp();
      s[t] = v;
      __syncwarp();
    }
  }
  if (t == 0) y[0] = s[0];
}
