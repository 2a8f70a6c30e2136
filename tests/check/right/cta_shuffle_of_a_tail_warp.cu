// grid: 1  block: 48
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  const int t = threadIdx.x;
  int sum = x[t];
  const unsigned all = __activemask();
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_down_sync(all, sum, step);
    if (t % 32 + step < (t < 32 ? 32 : 16)) sum += other;
  }
  if (t % 32 == 0) y[t / 32] = sum;
}
