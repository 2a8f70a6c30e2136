// grid: 1  block: 64
// args: [{"name": "count", "type": "i32", "size": 1, "fill": 0, "expect": 22}]
#include <cooperative_groups.h>
__global__ void count_thirds(int* count) {
  if (threadIdx.x % 3 == 0) {
    const auto here = cooperative_groups::coalesced_threads();
    if (here.thread_rank() == 0) atomicAdd(count, here.size());
  }
}
