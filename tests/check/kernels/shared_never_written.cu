// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: uninitialised at 8
__global__ void late(int* y) {
  __shared__ int part[64];
  if (threadIdx.x < 32) part[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = part[threadIdx.x];
}
