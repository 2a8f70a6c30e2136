// Squares four tiles of 512 integers for each block; a bulk copy writes each of them from the same staging buffer.
// The issuing thread waits until its copy has read the buffer before the barrier that lets the threads refill it.
// grid: 2  block: 128
// args: [{"type": "i32", "size": 4096, "fill": 3}, {"name": "y", "type": "i32", "size": 4096, "expect": 9}]
// with bulk_store_source_refilled: async-pending at 15
//   The threads fill the buffer with the next tile while the copy may still read the one before: mixed tiles in y. Seen
//   in tile-ai/TileOPs pull request 1550 (a persistent epilogue). PTX ISA, cp.async.bulk.wait_group.
#include "hopper.cuh"

__global__ void squares(const int* x, int* y) {
  __shared__ __align__(128) int staged[512];
  for (int tile = blockIdx.x; tile < 8; tile += gridDim.x) {
    for (int k = threadIdx.x; k < 512; k += blockDim.x) {
      const int value = x[tile * 512 + k];
      staged[k] = value * value;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      store(y + tile * 512, staged, sizeof staged);
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      // edit bulk_store_source_refilled:
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
