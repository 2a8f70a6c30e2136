// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    __syncwarp();
    if (t < 8) s[t] += s[t + 8];
    __syncwarp();
    if (t == 0)
      for (int i = 1; i < 8; ++i) s[0] += s[i];
  }
  __syncthreads();
  y[t] = s[0];
}
