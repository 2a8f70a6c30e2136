// grid: 3  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 1, "fill": 0}]
// finds: race at 6 or race at 9
__global__ void count(int* lock, int* y) {
  if (threadIdx.x) return;
  while (atomicCAS_block(lock, 0, 1)) {
  }
  __threadfence();
  *y += 1;
  __threadfence();
  atomicExch_block(lock, 0);
}
