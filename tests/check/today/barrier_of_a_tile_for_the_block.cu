// Adds up 256 numbers for each block: the warps by cg::reduce, their results through shared memory.
// block.sync() synchronises all warps.
// grid: 2  block: 256
// args: [{"type": "i32", "size": 512, "fill": 1}, {"name": "y", "type": "i32", "size": 2, "expect": 256}]
// with barrier_of_a_tile_for_the_block: race at 18
//   tile.sync() synchronises one warp, not the block: warp 0 may read the results of the others before they are
//   written. CUDA C++ Programming Guide, "Cooperative Groups" (sync of a thread_block_tile); the kind of NVIDIA/cutlass
//   issue 3117 (a barrier of the warp where others are waited for).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void sums(const int* x, int* y) {
  __shared__ int parts[8];
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int part = cg::reduce(tile, x[blockIdx.x * 256 + block.thread_rank()], cg::plus<int>());
  if (tile.thread_rank() == 0) parts[tile.meta_group_rank()] = part;
  block.sync();
  // edit barrier_of_a_tile_for_the_block: tile.sync();
  if (tile.meta_group_rank() == 0) {
    const int mine = tile.thread_rank() < 8 ? parts[tile.thread_rank()] : 0;
    const int sum = cg::reduce(tile, mine, cg::plus<int>());
    if (tile.thread_rank() == 0) y[blockIdx.x] = sum;
  }
}
