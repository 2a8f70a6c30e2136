// grid: 6  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "fill": 0, "expect": 12}]
// with grid_lock_no_fence: race at 15
//   block: 32
// with grid_lock_acquired_without_fence: race at 15
//   block: 32
// with grid_lock_released_without_fence: race at 15
//   block: 32
__global__ void count(int* lock, int* y) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1)) __nanosleep(20);
  __threadfence();
  // edit grid_lock_no_fence:
  // edit grid_lock_acquired_without_fence:
  *y += 1;
  __threadfence();
  // edit grid_lock_no_fence:
  // edit grid_lock_released_without_fence:
  atomicExch(lock, 0);
}
