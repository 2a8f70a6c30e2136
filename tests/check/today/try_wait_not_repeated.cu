// Loads 128 numbers for each block by a bulk copy and writes them in reverse order.
// The wait is repeated until it returns true.
// grid: 2  block: 128
// args: [{"type": "i32", "size": 256, "fill": 3}, {"name": "y", "type": "i32", "size": 256, "expect": 3}]
// with try_wait_not_repeated: async-pending at hopper.cuh:34, async-pending at 34
//   mbarrier.try_wait returns false after a time limit of the system, and its result is ignored: if the copy takes
//   longer, the threads read a tile that has not landed. PTX ISA, mbarrier.try_wait; llvm/llvm-project pull request
//   170285 describes the time limit.
#include "hopper.cuh"

__device__ bool try_wait(const void* bar, int parity) {
  int done;
  asm volatile("{ .reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(at(bar)), "r"(parity)
               : "memory");
  return done;
}

__global__ void reverse(const int* x, int* y) {
  __shared__ __align__(128) int tile[128];
  __shared__ unsigned long long full;
  const int first = blockIdx.x * 128, t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    load(tile, x + first, sizeof tile, &full);
  }
  __syncthreads();
  while (!try_wait(&full, 0)) {
  // edit try_wait_not_repeated: try_wait(&full, 0);
  }
  // edit try_wait_not_repeated:
  y[first + t] = tile[127 - t];
}
