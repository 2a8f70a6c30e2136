// Loads a tile of 64 x 32 floats by two tensor copies, whose box has 32 x 32, and turns the order of its elements.
// The barrier expects the bytes of both boxes.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "f32", "size": 2048, "fill": 2, "map": {"dims": [32, 64], "box": [32, 32]}}, {"name": "y", "type": "f32", "size": 2048, "expect": 2}]
// with expect_tx_of_one_box: deadlock
//   The barrier expects the bytes of one box: its phase may end when the first copy has landed, and the threads read
//   the other half too early; the bytes of the second copy are counted in the next phase, which nobody waits for. PTX
//   ISA, mbarrier "Tracking asynchronous operations" (expect-tx, complete-tx).
#include "hopper.cuh"

#include <cuda.h>

__device__ void load(void* to, const CUtensorMap* map, int row, void* bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          at(to)),
      "l"(map), "r"(0), "r"(row), "r"(at(bar))
      : "memory");
}

__global__ void turn(const __grid_constant__ CUtensorMap map, float* y) {
  constexpr int kBox = 32 * 32 * sizeof(float);
  __shared__ __align__(128) float tile[2048];
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&full)), "n"(2 * kBox) : "memory");
    // edit expect_tx_of_one_box: 2 * kBox => kBox
    load(tile, &map, 0, &full);
    load(tile + 1024, &map, 32, &full);
  }
  __syncthreads();
  wait(&full, 0);
  for (int i = threadIdx.x; i < 2048; i += 128) y[i] = tile[2047 - i];
}
