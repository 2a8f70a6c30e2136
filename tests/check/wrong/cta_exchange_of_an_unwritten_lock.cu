// grid: 1  block: 32
// args: [{"name": "lock", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 1}]
// finds: uninitialised at 5
__global__ void k(int* lock, int* y) {
  if (threadIdx.x == 0 && atomicExch(lock, 1) == 0) y[0] = 1;
}
