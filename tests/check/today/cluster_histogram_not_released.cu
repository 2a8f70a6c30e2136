// Two blocks of a cluster count the numbers 0 to 63 in their shared memory; block 0 adds the counts of block 1.
// The arrival releases, as it does by default.
// grid: 2  block: 128
// args: [{"type": "i32", "size": 256, "fill": 7}, {"name": "y", "type": "i32", "size": 8, "expect": [0, 0, 0, 0, 0, 0, 0, 256]}]
// with cluster_histogram_not_released: race at 24
//   The arrival at the cluster's barrier is relaxed, and the barrier of the block orders for the block only: block 0
//   may read counts from before. Seen in sgl-project/sglang pull request 38829. PTX ISA, barrier.cluster (".relaxed").
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) histogram(const int* x, int* y) {
  __shared__ int counts[8];
  const int t = threadIdx.x;
  if (t < 8) counts[t] = 0;
  __syncthreads();
  atomicAdd(&counts[x[blockIdx.x * 128 + t] % 8], 1);
  __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  // edit cluster_histogram_not_released: release => relaxed
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (blockIdx.x == 0 && t < 8) {
    unsigned theirs;
    int count;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(theirs) : "r"(at(&counts[t])));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(count) : "r"(theirs) : "memory");
    y[t] = counts[t] + count;
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
