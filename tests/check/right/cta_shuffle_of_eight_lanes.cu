// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  const int t = threadIdx.x;
  if (t < 8) {
    int sum = x[t];
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffu, sum, step);
    if (t == 0) y[0] = sum;
  }
}
