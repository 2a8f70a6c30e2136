// Block 1 of each cluster writes 64 numbers to a workspace in device memory and arrives at an mbarrier of block 0.
// Block 0 waits there and reads them.
// The arrivals release and the wait acquires at the scope of the cluster, which has both blocks.
// grid: 4  block: 64
// args: [{"name": "workspace", "type": "i32", "size": 128}, {"name": "y", "type": "i32", "size": 128, "expect": "iota"}]
// with device_memory_behind_a_relaxed_arrival: race at 24
//   The arrivals are relaxed and order nothing: block 0 may read what lay in the workspace before. triton-lang/triton
//   pull request 10922 (release and acquire of the cluster at mbarriers). PTX ISA, mbarrier.arrive (".relaxed").
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) hand_over(int* workspace, int* y) {
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, first = blockIdx.x / 2 * 64;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at(&full)) : "memory");
  cluster_sync();
  if (blockIdx.x % 2 == 1) {
    workspace[first + t] = first + t;
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(at(&full)));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
    // edit device_memory_behind_a_relaxed_arrival: release => relaxed
  } else {
    wait_for_cluster(&full, 0);
    y[first + 63 - t] = workspace[first + 63 - t];
  }
  cluster_sync();
}
