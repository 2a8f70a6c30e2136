// grid: 8  block: 64
// args: [{"type": "i32", "size": 512, "fill": "iota"}, {"name": "y", "type": "i32", "size": 16, "fill": 0, "expect": 32}]
__global__ void count(const int* x, int* y) {
  atomicAdd(y + x[blockIdx.x * 64 + threadIdx.x] % 16, 1);
}
