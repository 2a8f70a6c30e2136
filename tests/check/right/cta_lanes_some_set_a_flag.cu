// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  if (x[threadIdx.x] % 3 == 0) any = 1;
  __syncthreads();
  y[threadIdx.x] = any;
}
