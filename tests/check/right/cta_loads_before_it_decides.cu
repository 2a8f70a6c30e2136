// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}, {"type": "i32", "value": 40}]
__global__ void k(const int* x, int* y, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  __syncthreads();
  const int v = s[t];
  y[t] = t < n ? v : -1;
}
