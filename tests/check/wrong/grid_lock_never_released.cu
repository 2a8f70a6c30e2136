// grid: 3  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 3}]
// finds: deadlock at 6
__global__ void lock_it(int* lock, int* y) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) __nanosleep(20);
  y[blockIdx.x] = 1;
}
