// Thread 0 loads 128 numbers by a bulk copy; all threads wait at its mbarrier and reverse them.
// A barrier of the block lies between the initialisation and the waits.
// grid: 1  block: 128
// args: [{"type": "i32", "size": 128, "fill": 6}, {"name": "y", "type": "i32", "size": 128, "expect": 6}]
// with mbarrier_used_before_its_initialisation: race at hopper.cuh:18
//   Nothing orders the other warps behind the initialisation of the mbarrier: they may wait at one that is none yet.
//   PTX ISA, mbarrier.init (other operations on an object that is not initialised are undefined); MoonshotAI/FlashKDA
//   issue 24.
#include "hopper.cuh"

__global__ void reverse(const int* x, int* y) {
  __shared__ __align__(128) int row[128];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(at(&full)) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(at(row)),
        "l"(__cvta_generic_to_global(x)), "r"(at(&full))
        : "memory");
  }
  __syncthreads();
  // edit mbarrier_used_before_its_initialisation: __syncwarp();
  wait(&full, 0);
  y[t] = row[127 - t];
}
