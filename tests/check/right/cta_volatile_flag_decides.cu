// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "fill": 1}]
// leaves open: orders
// A warp may look at a flag of another one at any time, and take either way.
__global__ void k(int* y) {
  volatile __shared__ int begun;
  if (threadIdx.x == 0) begun = 0;
  __syncthreads();
  if (threadIdx.x == 32) begun = 1;
  y[threadIdx.x] = begun > 0 ? 7 : y[threadIdx.x];
}
