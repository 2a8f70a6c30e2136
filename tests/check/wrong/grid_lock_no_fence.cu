// grid: 4  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 1, "fill": 0}]
// finds: race at 8
__global__ void count(int* lock, int* y) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) {
  }
  *y += 1;
  atomicExch(lock, 0);
}
