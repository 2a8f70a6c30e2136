// grid: 1  block: 32
// args: [{"type": "null"}, {"type": "i32", "size": 32}]
// finds: out-of-bounds at 5
__global__ void gather(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];
}
