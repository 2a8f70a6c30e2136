// A thread of its own loads four pairs of tiles of bf16 into one stage; a warpgroup adds up their products.
// The warpgroup waits for the product, then says that the stage is free.
// grid: 1  block: 160  arch: sm_90a
// args: [{"type": "i32", "size": 2560, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 1024, "expect": 64}]
// with wgmma_stage_released_before_the_wait: async-pending at 25
//   The warpgroup says that the stage is free before it waits for the product: the next copy overwrites tiles that the
//   tensor cores still read. NVIDIA/Fuser issue 3561, NVIDIA/cutlass issue 2508. PTX ISA, wgmma.wait_group.
#include "hopper.cuh"

__global__ void product(const int* x, float* y) {
  __shared__ __align__(128) int ab[640];
  __shared__ unsigned long long full, empty;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(at(&empty)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    for (int i = 0; i < 4 && threadIdx.x == 128; ++i) {
      wait(&empty, i & 1 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2560;" ::"r"(at(&full)) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 2560, [%2];" ::"r"(at(ab)),
          "l"(__cvta_generic_to_global(x + 640 * i)), "r"(at(&full))
          : "memory");
    }
    return;
  }
  float d[8] = {};
  for (int i = 0; i < 4; ++i) {
    wait(&full, i & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, ab, ab + 512, i);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // edit wgmma_stage_released_before_the_wait: arrive(&empty);
    arrive(&empty);
    // edit wgmma_stage_released_before_the_wait: asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 8; ++i) y[i * 128 + threadIdx.x] = d[i];
}
