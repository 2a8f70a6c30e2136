// Each half of the warp reaches a different barrier.
// grid: 1  block: 64  finds: divergent-barrier
// args: [{"type": "i32", "size": 64}]
__global__ void halves(int* y) {
  if (threadIdx.x % 32 < 16) {
    y[threadIdx.x] = 1;
    asm volatile("bar.sync 0;" ::: "memory");
    y[threadIdx.x] = 2;
  } else {
    asm volatile("bar.sync 0;" ::: "memory");
    y[threadIdx.x] = 3;
  }
}
