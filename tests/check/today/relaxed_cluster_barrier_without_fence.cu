// Each block of a cluster takes the 64 numbers that its peer has put into shared memory.
// A fence of the cluster before the relaxed arrival releases them (PTX ISA, fence, "Release and Acquire Patterns").
// grid: 4  block: 64
// args: [{"type": "i32", "size": 256, "fill": 5}, {"name": "y", "type": "i32", "size": 256, "expect": 5}]
// with relaxed_cluster_barrier_without_fence: race at 22
//   The arrival at the barrier of the cluster is relaxed and no fence comes before: the peer's stores may not be
//   visible behind it. sgl-project/sglang pull request 38829; forums.developer.nvidia.com/t/301964 quotes PTX ISA,
//   barrier.cluster (".relaxed").
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) swap(const int* x, int* y) {
  __shared__ int box[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, peer = blockIdx.x % 2 ^ 1;
  box[threadIdx.x] = x[i];
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
  // edit relaxed_cluster_barrier_without_fence:
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  unsigned theirs;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(at(&box[63 - threadIdx.x])), "r"(peer));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(theirs) : "memory");
  y[i] = value;
  cluster_sync();
}
