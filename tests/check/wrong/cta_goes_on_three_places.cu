// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: out-of-bounds at 7, race at 7, race at 8, out-of-bounds at 9
__global__ void k(const int* x, int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t + 1];
  const int v = s[63 - t];
  y[t + 1] = v;
}
