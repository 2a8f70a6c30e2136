// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  const int n = __syncthreads_count(x[t] > 10);
  y[t] = s[63 - t] + n;
}
