// Each block of a cluster of two adds the sum of its peer, which it reads in the peer's shared memory, to its own.
// A barrier of the cluster before the end keeps the shared memory of both.
// grid: 4  block: 128
// args: [{"type": "i32", "size": 512, "fill": 1}, {"name": "y", "type": "i32", "size": 4, "expect": 256}]
// with peer_leaves_before_it_is_read: out-of-bounds at 24
//   A block may end, and its shared memory go to another block, while its peer has yet to read it: a fault or a wrong
//   number. Seen in triton-lang/triton issue 11730. CUDA C++ Programming Guide, "Distributed Shared Memory"; PTX ISA,
//   "Shared State Space".
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) sums_of_pairs(const int* x, int* y) {
  __shared__ int parts[4], total;
  const auto cluster = cg::this_cluster();
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int part = cg::reduce(warp, x[blockIdx.x * 128 + threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) parts[warp.meta_group_rank()] = part;
  __syncthreads();
  if (threadIdx.x == 0) total = parts[0] + parts[1] + parts[2] + parts[3];
  cluster.sync();
  if (threadIdx.x == 0) {
    const int* theirs = cluster.map_shared_rank(&total, cluster.block_rank() ^ 1);
    y[blockIdx.x] = total + *theirs;
  }
  cluster.sync();
  // edit peer_leaves_before_it_is_read:
}
