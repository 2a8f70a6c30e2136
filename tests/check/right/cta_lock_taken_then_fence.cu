// grid: 1  block: 64
// args: [{"name": "sum", "type": "i32", "size": 1, "fill": 0, "expect": [2]}, {"name": "lock", "type": "i32", "size": 1, "fill": 0}]
// leaves open: orders
// with cta_lock_taken_without_fence: unfenced at 11
//   may be the value from before the other section
__global__ void k(int* sum, int* lock) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  // edit cta_lock_taken_without_fence:
  sum[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
