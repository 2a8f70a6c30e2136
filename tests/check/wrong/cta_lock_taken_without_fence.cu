// grid: 1  block: 64
// args: [{"name": "sum", "type": "i32", "size": 1, "fill": 0}, {"name": "lock", "type": "i32", "size": 1, "fill": 0}]
// finds: unfenced at 7
__global__ void k(int* sum, int* lock) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1)) {}
  sum[0] += 1;  // may be the value from before the other section
  __threadfence();
  atomicExch(lock, 0);
}
