// Block 1 of each cluster writes 64 numbers into the shared memory of block 0 and arrives at an mbarrier there.
// The arrivals release at the scope of the cluster.
// grid: 4  block: 64
// args: [{"type": "i32", "size": 256, "fill": 3}, {"name": "y", "type": "i32", "size": 128, "expect": 3}]
// with remote_arrival_of_block_scope: nothing
//   The arrivals release at the scope of their own block, so they order nothing for the threads of block 0: they may
//   read the numbers of before. triton-lang/triton pull request 10922 makes them releases of the cluster. PTX ISA,
//   mbarrier.arrive (".release", ".cta") and "Release and Acquire Patterns". A limit of the checks
//   (docs/use/check-limits.md).
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) hand_over(const int* x, int* y) {
  __shared__ int box[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at(&full)) : "memory");
  cluster_sync();
  if (blockIdx.x % 2 == 1) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(of_rank(&box[t], 0)), "r"(x[i]) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_rank(&full, 0)) : "memory");
    // edit remote_arrival_of_block_scope: cluster.shared => cta.shared
  } else {
    wait_for_cluster(&full, 0);
    y[blockIdx.x / 2 * 64 + t] = box[63 - t];
  }
  cluster_sync();
}
