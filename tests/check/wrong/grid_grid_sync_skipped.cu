// grid: 3  block: 64  cooperative: yes
// args: [{"type": "i32", "size": 192}]
// finds: deadlock at 8
#include <cooperative_groups.h>
__global__ void rounds(int* y) {
  if (blockIdx.x == 1) return;
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  cooperative_groups::this_grid().sync();
  y[blockIdx.x * 64 + threadIdx.x] = 2;
}
