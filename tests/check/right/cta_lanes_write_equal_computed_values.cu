// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int n;
  n = x[threadIdx.x] / 64;
  __syncthreads();
  y[threadIdx.x] = n;
}
