// grid: 1  block: 32
// args: [{"type": "i32", "size": 32, "fill": 1, "read_only": true}]
// finds: write-to-input at 5
__global__ void clear(int* x) {
  x[threadIdx.x] = 0;
}
