// grid: 1  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 32}]
// finds: deadlock at 5
__global__ void lock_it(int* lock, int* y) {
  while (atomicCAS(lock, 0, 1)) {
  }
  y[threadIdx.x] = 1;
}
