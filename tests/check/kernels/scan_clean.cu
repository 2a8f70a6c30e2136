// grid: 1  block: 256
// args: [{"type": "i32", "size": 256, "fill": 1}, {"type": "i32", "size": 256}]
__global__ void scan(const int* x, int* y) {
  __shared__ int part[2][256];
  const int t = threadIdx.x;
  int from = 0;
  part[0][t] = x[t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    part[1 - from][t] = part[from][t] + (t >= step ? part[from][t - step] : 0);
    from = 1 - from;
    __syncthreads();
  }
  y[t] = part[from][t];
}
