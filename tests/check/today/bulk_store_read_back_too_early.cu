// Each block writes a row to a workspace by a bulk copy, then its threads read the row back in another order.
// wait_group waits until the row is written and visible to the waiting thread; the barrier passes that on.
// grid: 2  block: 128
// args: [{"name": "workspace", "type": "i32", "size": 256}, {"name": "y", "type": "i32", "size": 256, "expect": 4}]
// with bulk_store_read_back_too_early: race at hopper.cuh:40
//   wait_group.read says that shared memory has been read, not that the row is written: the threads may read old
//   numbers. Asked of HazyResearch/ThunderKittens in issue 194; triton-lang/triton pull request 10419. PTX ISA,
//   cp.async.bulk.wait_group (".read").
#include "hopper.cuh"

__global__ void turn(int* workspace, int* y) {
  __shared__ __align__(128) int row[128];
  const int first = blockIdx.x * 128, t = threadIdx.x;
  row[t] = 4;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    store(workspace + first, row, sizeof row);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    // edit bulk_store_read_back_too_early: wait_group => wait_group.read
  }
  __syncthreads();
  y[first + t] = workspace[first + 127 - t];
}
