// Block 0 of a cluster loads 64 numbers into both blocks by one multicast; each block reverses them.
// Each block arrives at its own mbarrier and expects the bytes.
// grid: 2  block: 64  arch: sm_90a
// args: [{"type": "i32", "size": 64, "fill": 6}, {"name": "y", "type": "i32", "size": 128, "expect": 6}]
// with multicast_expected_by_one_block: deadlock
//   The copy completes bytes at the mbarrier of each block, but only block 0 arrives and expects them: the phase in
//   block 1 never ends. Seen in facebookexperimental/triton pull request 908. PTX ISA, cp.async.bulk
//   (".multicast::cluster").
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) reverse(const int* x, int* y) {
  __shared__ __align__(128) int row[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  if (t == 0) {
  // edit multicast_expected_by_one_block: if (t == 0 && blockIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&full)) : "memory");
    if (blockIdx.x == 0)
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], "
          "3;" ::"r"(at(row)),
          "l"(__cvta_generic_to_global(x)), "r"(at(&full))
          : "memory");
  }
  __syncwarp();
  wait(&full, 0);
  y[blockIdx.x * 64 + t] = row[63 - t];
  cluster_sync();
}
