// grid: 2  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0, "expect": 0}, {"name": "sum", "type": "i32", "size": 1, "fill": 0, "expect": 128}]
// leaves open: orders
__global__ void locked(int* lock, volatile int* sum) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *sum = *sum + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
