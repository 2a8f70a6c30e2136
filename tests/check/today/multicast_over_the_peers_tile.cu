// Block 0 of a cluster loads four rows of 32 numbers into both blocks by multicast; a warp of each block adds them up.
// The readers of both blocks arrive at the empty barrier of block 0.
// grid: 2  block: 64  arch: sm_90a
// args: [{"type": "i32", "size": 128, "fill": 1}, {"name": "y", "type": "i32", "size": 64, "expect": 4}]
// with multicast_over_the_peers_tile: async-pending at 33, deadlock at hopper.cuh:47
//   Block 0 waits only for its own readers before it overwrites the slots of both blocks: the readers of block 1 may
//   see mixed rows. Seen in inclusionAI/humming pull request 53; explained in deepseek-ai/DeepGEMM issue 51. PTX ISA,
//   cp.async.bulk (".multicast::cluster").
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) sum_rows(const int* x, int* y) {
  __shared__ __align__(128) int row[32];
  __shared__ unsigned long long full, empty;
  const int lane = threadIdx.x % 32;
  unsigned empty_of_0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(empty_of_0) : "r"(at(&empty)));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(at(&empty)) : "memory");
    // edit multicast_over_the_peers_tile: 2 => 1
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) {
      if (blockIdx.x == 0) wait_for_cluster(&empty, i & 1 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(&full)) : "memory");
      if (blockIdx.x == 0)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, "
            "[%2], 3;" ::"r"(at(row)),
            "l"(__cvta_generic_to_global(x + 32 * i)), "r"(at(&full))
            : "memory");
      wait_for_cluster(&full, i & 1);
    } else if (threadIdx.x >= 32) {
      wait_for_cluster(&full, i & 1);
      sum += row[31 - lane];
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (lane == 0)
      // edit multicast_over_the_peers_tile: if (lane == 0 && blockIdx.x == 0)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(empty_of_0) : "memory");
    }
  }
  if (threadIdx.x >= 32) y[blockIdx.x * 32 + lane] = sum;
  __syncwarp();
  cluster_sync();
}
