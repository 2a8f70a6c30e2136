// grid: 6  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "fill": 0, "expect": 6}]
__global__ void count(int* lock, int* y) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) __nanosleep(20);
  __threadfence();
  *y += 1;
  __threadfence();
  *static_cast<volatile int*>(lock) = 0;
}
