// grid: 1  block: 128
// args: [{"type": "i32", "size": 128, "fill": 1}, {"name": "y", "type": "i32", "size": 4, "expect": 32}]
__global__ void sum(const int* x, int* y) {
  __shared__ volatile int part[128];
  const int t = threadIdx.x, lane = t % 32;
  part[t] = x[t];
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    if (lane < step) part[t] = part[t] + part[t + step];
    __syncwarp();
  }
  if (lane == 0) y[t / 32] = part[t];
}
