// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 128, "fill": 1}, {"name": "y", "type": "i32", "size": 128, "expect": "iota"}]
__global__ void scan(const int* x, int* y) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[2 * t] = x[2 * t];
  s[2 * t + 1] = x[2 * t + 1];
  int gap = 1;
  for (int d = 64; d > 0; d /= 2, gap *= 2) {
    __syncthreads();
    if (t < d) s[gap * (2 * t + 2) - 1] += s[gap * (2 * t + 1) - 1];
  }
  if (t == 0) s[127] = 0;
  for (int d = 1; d < 128; d *= 2) {
    gap /= 2;
    __syncthreads();
    if (t < d) {
      const int a = gap * (2 * t + 1) - 1, b = gap * (2 * t + 2) - 1, left = s[a];
      s[a] = s[b];
      s[b] += left;
    }
  }
  __syncthreads();
  y[2 * t] = s[2 * t];
  y[2 * t + 1] = s[2 * t + 1];
}
