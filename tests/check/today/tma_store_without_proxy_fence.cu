// Doubles 1024 floats for each block in shared memory and writes them back with one bulk copy.
// Each thread fences its stores for the async proxy before the barrier that hands the tile to the copy.
// grid: 2  block: 128
// args: [{"type": "f32", "size": 2048, "fill": 1}, {"name": "y", "type": "f32", "size": 2048, "expect": 2}]
// with tma_store_without_proxy_fence: race at hopper.cuh:40
//   Nothing makes the threads' stores visible to the async proxy: the copy may write what lay in the tile before. Seen
//   in MoonshotAI/FlashKDA issue 24. PTX ISA, "Async proxy" and membar/fence.proxy.async.
#include "hopper.cuh"

__global__ void twice(const float* x, float* y) {
  __shared__ __align__(128) float tile[1024];
  const int first = blockIdx.x * 1024;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = 2 * x[first + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  // edit tma_store_without_proxy_fence:
  __syncthreads();
  if (threadIdx.x == 0) {
    store(y + first, tile, sizeof tile);
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
