// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// finds: uninitialised at 8
__global__ void k(const int* x, int* y) {
  __shared__ int total[1];
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < 64; ++i) total[0] += x[i];
  __syncthreads();
  y[threadIdx.x] = total[0];
}
