// Each thread gives its number to the thread of the same index in the other block of its cluster.
// A barrier of the cluster before the stores makes sure that both blocks run.
// grid: 4  block: 64
// args: [{"type": "i32", "size": 256, "fill": 7}, {"name": "y", "type": "i32", "size": 256, "expect": 7}]
// with store_to_a_peer_that_may_not_run: race at 16, uninitialised at 18
//   Nothing says that the other block has begun when the number is stored in its shared memory. Seen in
//   facebookexperimental/triton pull request 2292. CUDA C++ Programming Guide, "Distributed Shared Memory" (all blocks
//   must have started executing before the access).
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) swap(const int* x, int* y) {
  __shared__ int box[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, rank = blockIdx.x % 2;
  cluster_sync();
  // edit store_to_a_peer_that_may_not_run:
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(of_rank(&box[threadIdx.x], rank ^ 1)), "r"(x[i]) : "memory");
  cluster_sync();
  y[i] = box[threadIdx.x];
}
