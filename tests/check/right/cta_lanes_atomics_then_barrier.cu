// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: nothing
__global__ void k(const int* x, int* y) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[x[t] % 8], 1);
  __syncthreads();
  if (t < 8) y[t] = bins[t];
}
