// grid: 3  block: 33
// args: [{"name": "y", "type": "u16", "size": 99, "fill": 1, "expect": 3}]
// Rows of two blocks meet inside a word; each reads and writes its own half.
__global__ void scale(unsigned short* y) {
  y[blockIdx.x * 33 + threadIdx.x] *= 3;
}
