// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 6, uninitialised at 7, race at 7
__global__ void k(int* y) {
  __shared__ int n;
  if (threadIdx.x == 40) n = 0;
  atomicAdd(&n, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[0] = n;
}
