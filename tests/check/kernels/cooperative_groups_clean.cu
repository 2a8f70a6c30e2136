// grid: 2  block: 128
// args: [{"type": "i32", "size": 256, "fill": 1}, {"name": "y", "type": "i32", "size": 16, "expect": 16}]
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void sums(const int* x, int* y) {
  const cg::thread_block block = cg::this_thread_block();
  __shared__ int part[128];
  part[block.thread_rank()] = x[blockIdx.x * 128 + block.thread_rank()];
  block.sync();
  const cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  const int sum = cg::reduce(tile, part[127 - block.thread_rank()], cg::plus<int>());
  if (tile.thread_rank() == 0) y[blockIdx.x * 8 + tile.meta_group_rank()] = sum;
}
