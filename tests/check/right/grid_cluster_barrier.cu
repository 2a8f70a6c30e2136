// grid: 4  block: 64
// args: [{"type": "i32", "size": 256}, {"name": "y", "type": "i32", "size": 256, "expect": 3}]
#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) swap(int* box, int* y) {
  box[blockIdx.x * 64 + threadIdx.x] = 3;
  cooperative_groups::this_cluster().sync();
  y[blockIdx.x * 64 + threadIdx.x] = box[(blockIdx.x ^ 1) * 64 + 63 - threadIdx.x];
}
