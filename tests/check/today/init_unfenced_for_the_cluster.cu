// Two blocks of a cluster send each other 64 numbers by st.async, which completes an mbarrier of the receiver.
// fence.mbarrier_init publishes the initialisation through the relaxed barrier of the cluster.
// grid: 2  block: 64  arch: sm_90a
// args: [{"name": "y", "type": "i32", "size": 128, "expect": "iota"}]
// with init_unfenced_for_the_cluster: race at 27
//   The barrier of the cluster is a relaxed one and nothing publishes the initialisation of the mbarrier: a peer may
//   complete bytes of a barrier that is not initialised for it. MoonshotAI/FlashKDA issue 24, part 2; NVIDIA/cccl issue
//   9994 describes the right pattern. PTX ISA, membar/fence.mbarrier_init.
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) swap(int* y) {
  __shared__ int box[64];
  __shared__ unsigned long long full;
  const unsigned peer = blockIdx.x ^ 1;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    // edit init_unfenced_for_the_cluster:
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&full)) : "memory");
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  const int value = peer * 64 + threadIdx.x;
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
                   of_rank(&box[threadIdx.x], peer)),
               "r"(value), "r"(of_rank(&full, peer))
               : "memory");
  wait_for_cluster(&full, 0);
  y[blockIdx.x * 64 + threadIdx.x] = box[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
