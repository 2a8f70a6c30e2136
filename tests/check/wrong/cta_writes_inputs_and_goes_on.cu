// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 64, "fill": 1, "read_only": true}, {"name": "y", "type": "i32", "size": 64}]
// finds: write-to-input at 5, out-of-bounds at 6
__global__ void k(int* x, int* y) {
  x[threadIdx.x] = 1;
  y[threadIdx.x + 60] = 1;
}
