// grid: 2  block: 32
// args: [{"type": "i32", "size": 4, "fill": 0}, {"name": "y", "type": "i32", "size": 4, "fill": 0, "expect": 16}]
__global__ void count(int* lock, volatile int* y) {
  const int i = threadIdx.x % 4;
  for (bool done = false; !done;)
    if (atomicCAS(lock + i, 0, 1) == 0) {
      __threadfence();
      y[i] = y[i] + 1;
      __threadfence();
      atomicExch(lock + i, 0);
      done = true;
    }
}
