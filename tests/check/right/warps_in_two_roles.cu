// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 256, "fill": "iota"}, {"name": "y", "type": "i32", "size": 256}]
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ void wait(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
__global__ void pass(const int* x, int* y) {
  __shared__ int slot[32];
  const int lane = threadIdx.x & 31;
  const bool produces = threadIdx.x < 32;
  if (!produces) arrive(2);
  for (int i = 0; i < 8; ++i) {
    if (produces) {
      wait(2);  // the slot is empty
      slot[lane] = x[i * 32 + lane];
      arrive(1);
    } else {
      wait(1);  // the slot is full
      y[i * 32 + lane] = slot[31 - lane];
      if (i < 7) arrive(2);
    }
  }
}
