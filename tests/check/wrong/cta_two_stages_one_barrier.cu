// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 9, race at 10
__global__ void k(const int* x, int* y) {
  __shared__ int a[64], b[64];
  const int t = threadIdx.x;
  a[t] = x[t];
  __syncthreads();
  b[t] = a[63 - t];
  y[t] = b[(t + 32) % 64];
}
