// grid: 4  block: 32
// args: [{"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 40, "expect": "iota"}]
// An item belongs to the block that takes its number.
__global__ void work(unsigned* next, int* y) {
  if (threadIdx.x) return;
  for (unsigned i = atomicAdd(next, 1); i < 40; i = atomicAdd(next, 1)) y[i] = i;
}
