// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 9, race at 10
__global__ void k(const int* x, int* y) {
  __shared__ int s[2];
  const int t = threadIdx.x;
  int sum = x[t];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (t % 32 == 0) s[t / 32] = sum;
  const int total = s[0] + s[1];
  __syncthreads();
  y[t] = total;
}
