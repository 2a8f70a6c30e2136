// grid: 4  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}]
// finds: race at 5
__global__ void count(int* n) {
  atomicAdd_block(n, 1);
}
