// grid: 1  block: 32
// args: [{"name": "n", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 6
__global__ void k(int* n, int* y) {
  if (threadIdx.x == 5) *n = 0;
  y[threadIdx.x] = atomicAdd(n, 1);
}
