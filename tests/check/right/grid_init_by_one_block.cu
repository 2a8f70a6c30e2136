// grid: 4  block: 32
// args: [{"type": "i32", "size": 1}, {"type": "i32", "size": 1, "fill": 0}, {"name": "done", "type": "i32", "size": 1, "fill": 0, "expect": 4}, {"type": "i32", "size": 4}]
// The plain store lies before the others' atomics.
__global__ void count(int* n, volatile int* ready, int* done, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *n = 10;
    __threadfence();
    *ready = 1;
  }
  while (*ready == 0) __nanosleep(20);
  __threadfence();
  y[blockIdx.x] = atomicAdd(n, 1);
  atomicAdd(done, 1);
}
