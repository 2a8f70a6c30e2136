// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  if (t >= 32) return;  // its exit counts as an arrival
  __syncthreads();
  y[t] = s[t] + s[t + 32];
}
