// grid: 3  block: 32
// args: [{"type": "u32", "size": 1, "fill": 0}, {"type": "i32", "size": 32}]
// finds: race at 6
__global__ void overlap(unsigned* n, int* y) {
  atomicAdd(n, 1);
  y[threadIdx.x] = blockIdx.x;
}
