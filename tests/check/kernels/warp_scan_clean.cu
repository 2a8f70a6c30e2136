// grid: 1  block: 96
// args: [{"type": "i32", "size": 96, "fill": 1}, {"name": "y", "type": "i32", "size": 96, "expect": "iota"}]
__global__ void exclusive(const int* x, int* y) {
  __shared__ int totals[3];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = x[threadIdx.x];
  int v = own;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, v, step);
    if (lane >= step) v += other;
  }
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w) v += totals[w];
  y[threadIdx.x] = v - own;
}
