// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: divergent-barrier at 6
__global__ void half(int* y) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  }
  y[threadIdx.x] = 1;
}
