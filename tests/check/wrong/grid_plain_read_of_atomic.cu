// grid: 4  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 4}]
// finds: race
__global__ void count(int* n, int* y) {
  if (threadIdx.x) return;
  atomicAdd(n, 1);
  y[blockIdx.x] = *n;
}
