// grid: 4  block: 64  smem: 512  cooperative: yes
// args: [{"type": "f64", "size": 1000, "fill": 1}, {"type": "f64", "size": 4}, {"type": "f64", "size": 1, "expect": 1000}, {"type": "i32", "value": 1000}]
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void sum(const double* x, double* parts, double* y, int n) {
  extern __shared__ double own[];
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  double s = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) s += x[i];
  own[block.thread_rank()] = s;
  cg::sync(block);
  if (block.thread_rank() == 0) {
    for (unsigned t = 1; t < block.size(); ++t) s += own[t];
    parts[blockIdx.x] = s;
  }
  cg::sync(grid);
  if (grid.thread_rank() == 0) {
    for (unsigned b = 1; b < gridDim.x; ++b) s += parts[b];
    *y = s;
  }
}
