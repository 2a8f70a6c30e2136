// grid: 2  block: 32
// args: [{"type": "i32", "size": 8}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 8, "expect": "iota"}]
// with grid_queue_item_without_fence: race
__global__ void queue(int* items, int* tail, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < 8; ++i) {
      items[i] = i;
      __threadfence();
      // edit grid_queue_item_without_fence:
      atomicAdd(tail, 1);
    }
  } else {
    for (int i = 0; i < 8; ++i) {
      while (atomicAdd(tail, 0) <= i) __nanosleep(20);
      __threadfence();
      y[i] = items[i];
    }
  }
}
