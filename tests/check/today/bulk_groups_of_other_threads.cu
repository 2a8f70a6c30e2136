// Four warps double rows of 256 integers; the first lane of each warp writes its row with a bulk copy of its own.
// Each lane that has committed a copy waits for it before the barrier.
// grid: 1  block: 128
// args: [{"type": "i32", "size": 3072, "fill": 21}, {"name": "y", "type": "i32", "size": 3072, "expect": 42}]
// with bulk_groups_of_other_threads: async-pending at 16
//   Groups of bulk copies belong to the thread that committed them, so the wait of thread 0 covers the copy of warp 0
//   only: the rows of the other warps may be overwritten while they are read. PTX ISA, cp.async.bulk.wait_group ("of
//   the executing thread"); deepseek-ai/DeepEP issue 549 discusses which thread's groups a wait covers.
#include "hopper.cuh"

__global__ void twice(const int* x, int* y) {
  __shared__ __align__(128) int rows[4][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 3; ++i) {
    const int first = (i * 4 + warp) * 256;
    for (int k = lane; k < 256; k += 32) rows[warp][k] = 2 * x[first + k];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) store(y + first, rows[warp], sizeof rows[warp]);
    if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    // edit bulk_groups_of_other_threads: lane => threadIdx.x
    __syncthreads();
  }
  if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
