// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 9, race at 11
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    s[t] = x[t] + i;
    __syncthreads();
    sum += s[63 - t];
  }
  y[t] = sum;
}
