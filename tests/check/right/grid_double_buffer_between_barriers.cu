// grid: 4  block: 32  cooperative: yes
// args: [{"type": "i32", "size": 256, "fill": 1}, {"name": "y", "type": "i32", "size": 128, "expect": 8}]
// Two halves: a block writes one while its neighbours read the other.
#include <cooperative_groups.h>
__global__ void rounds(int* box, int* y) {
  const int n = 128, i = blockIdx.x * 32 + threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    box[(round + 1) % 2 * n + i] = box[round % 2 * n + i] + box[round % 2 * n + (i + 32) % n];
    cooperative_groups::this_grid().sync();
  }
  y[i] = box[n + i];
}
