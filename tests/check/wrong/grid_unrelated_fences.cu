// grid: 3  block: 32
// args: [{"type": "u32", "size": 3, "fill": 0}, {"type": "i32", "size": 32}]
// finds: race at 8
// Each block releases and acquires, but at a place of its own.
__global__ void overlap(unsigned* n, int* y) {
  __threadfence();
  atomicAdd(n + blockIdx.x, 1);
  y[threadIdx.x] = blockIdx.x;
  __threadfence();
}
