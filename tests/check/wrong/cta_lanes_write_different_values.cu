// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 6
__global__ void k(int* y) {
  __shared__ int last;
  last = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = last;
}
