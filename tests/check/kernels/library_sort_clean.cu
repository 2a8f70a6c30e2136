// grid: 1  block: 128
// args: [{"name": "y", "type": "i32", "size": 512, "expect": "iota"}]
// conflicts at: any
#include <cub/block/block_radix_sort.cuh>
__global__ void sort(int* y) {
  using Sort = cub::BlockRadixSort<int, 128, 4>;
  __shared__ typename Sort::TempStorage memory;
  int keys[4];
  for (int i = 0; i < 4; ++i) keys[i] = (4 * threadIdx.x + i) * 37 % 512;
  Sort(memory).SortBlockedToStriped(keys);
  for (int i = 0; i < 4; ++i) y[128 * i + threadIdx.x] = keys[i];
}
