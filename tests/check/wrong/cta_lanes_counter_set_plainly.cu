// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 7
__global__ void k(int* y) {
  __shared__ int n;
  if (threadIdx.x == 5) n = 0;
  y[threadIdx.x] = atomicAdd(&n, 1);
}
