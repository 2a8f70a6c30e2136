// grid: 1  block: 128
// args: [{"type": "i32", "size": 128, "fill": "iota"}, {"name": "y", "type": "i32", "size": 1, "expect": 1}]
__global__ void any_above(const int* x, int* y) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (x[threadIdx.x] > 20) found = 1;
  __syncthreads();
  if (threadIdx.x == 0) *y = found;
}
