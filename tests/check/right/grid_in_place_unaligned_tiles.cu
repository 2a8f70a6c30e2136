// grid: 5  block: 24
// args: [{"name": "x", "type": "i32", "size": 120, "fill": 2, "expect": 6}]
__global__ void scale(int* x) {
  x[blockIdx.x * 24 + threadIdx.x] *= 3;
}
