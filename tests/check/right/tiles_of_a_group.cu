// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 64, "fill": 1}, {"name": "y", "type": "f32", "size": 16, "expect": 4}]
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void sum(const float* x, float* y) {
  __shared__ float s[64];
  auto tile = cg::tiled_partition<4>(cg::this_thread_block());
  float* mine = s + threadIdx.x / 4 * 4;
  mine[tile.thread_rank()] = x[threadIdx.x];
  tile.sync();
  if (tile.thread_rank() == 0) y[threadIdx.x / 4] = mine[0] + mine[1] + mine[2] + mine[3];
}
