// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: out-of-bounds at 6
__global__ void shift(int* y) {
  __shared__ int part[64];
  part[threadIdx.x + 1] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = threadIdx.x ? part[threadIdx.x] : 0;
}
