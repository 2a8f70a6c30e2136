// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 32, "fill": "iota"}, {"name": "y", "type": "i32", "size": 32, "expect": [120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376, 376]}]
__global__ void sums(const int* x, int* y) {
  int v = x[threadIdx.x];
  const unsigned half = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  if (threadIdx.x < 16) {
    for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(half, v, d);
  } else {
    for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(half, v, d);
  }
  y[threadIdx.x] = v;
}
