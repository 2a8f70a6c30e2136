// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  for (int step = 1; step < 32; step *= 2) {
    __syncwarp();
    const int v = t >= step ? s[t - step] : 0;
    __syncwarp();
    s[t] += v;
  }
  y[t] = s[t];
}
