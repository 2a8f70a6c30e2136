// Tiles of two and of four warps reduce and synchronise through the memory reserved for cooperative groups.
// grid: 2  block: 256  leaves open: orders
// args: [{"type": "i32", "size": 512, "fill": 1}, {"type": "i32", "size": 512, "expect": 192}]
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void tiles(const int* x, int* y) {
  __shared__ cg::block_tile_memory<256> scratch;
  auto block = cg::this_thread_block(scratch);
  auto two = cg::tiled_partition<64>(block);
  auto four = cg::tiled_partition<128>(block);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int sum = cg::reduce(two, x[i], cg::plus<int>());
  two.sync();
  y[i] = sum + cg::reduce(four, x[i], cg::plus<int>());
}
