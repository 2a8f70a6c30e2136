// grid: 3  block: 32  cooperative: yes
// args: [{"name": "x", "type": "i32", "size": 96, "fill": "iota", "expect": 7}, {"type": "i32", "size": 96}]
#include <cooperative_groups.h>
__global__ void shift(int* x, int* y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[(i + 32) % 96];
  cooperative_groups::this_grid().sync();
  x[i] = 7;
}
