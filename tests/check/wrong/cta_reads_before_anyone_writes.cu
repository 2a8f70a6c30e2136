// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 6, race at 7
__global__ void k(int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x, v = s[63 - t];
  s[t] = t;
  y[t] = v;
}
