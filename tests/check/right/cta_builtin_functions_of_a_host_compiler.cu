// grid: 1  block: 32
// args: [{"name": "a", "type": "i32", "size": 32, "fill": "iota"}, {"name": "y", "type": "i32", "size": 32}]
__global__ void k(const int* a, int* y) {
  __builtin_memset(y + threadIdx.x, 0, 4);
  __builtin_memcpy(y + threadIdx.x, a + threadIdx.x, 4);
}
