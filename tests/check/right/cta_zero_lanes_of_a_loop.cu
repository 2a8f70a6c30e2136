// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (t < 8) s[t] = x[8 * i + t];
    __syncwarp();
    sum += s[t % 8];
    __syncwarp();
  }
  y[t] = sum;
}
