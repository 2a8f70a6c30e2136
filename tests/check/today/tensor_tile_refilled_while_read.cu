// Adds up four tiles of 32 x 32 floats, which a tensor copy loads one after another into one buffer.
// A barrier keeps the next copy until every thread has read the tile.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "f32", "size": 4096, "fill": 1, "map": {"dims": [32, 128], "box": [32, 32]}}, {"name": "y", "type": "f32", "size": 1024, "expect": 4}]
// with tensor_tile_refilled_while_read: race at 18, deadlock at hopper.cuh:18
//   Thread 0 starts the next copy as soon as it has read its own elements: the copy overwrites the tile under the other
//   warps. Kind of NVIDIA/Fuser pull request 4151 (barrier between the use of a tile and the next TMA load); PTX ISA,
//   cp.async.bulk.tensor, which writes without any order after the other threads' loads.
#include "hopper.cuh"

#include <cuda.h>

__device__ void load(void* to, const CUtensorMap* map, int row, int bytes, void* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          at(to)),
      "l"(map), "r"(0), "r"(row), "r"(at(bar))
      : "memory");
}

__global__ void sum_tiles(const __grid_constant__ CUtensorMap map, float* y) {
  __shared__ __align__(128) float tile[1024];
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sum[8] = {};
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) load(tile, &map, 32 * i, sizeof tile, &full);
    wait(&full, i & 1);
    for (int k = 0; k < 8; ++k) sum[k] += tile[128 * k + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    // edit tensor_tile_refilled_while_read:
  }
  for (int k = 0; k < 8; ++k) y[128 * k + threadIdx.x] = sum[k];
}
