// grid: 4  block: 32
// args: [{"name": "x", "type": "i32", "size": 128, "fill": "iota"}, {"name": "bits", "type": "u32", "size": 4, "fill": 0, "expect": 4294967295}]
__global__ void mark(const int* x, unsigned* bits) {
  const int v = x[blockIdx.x * 32 + threadIdx.x];
  atomicOr(&bits[v / 32], 1u << (v % 32));
}
