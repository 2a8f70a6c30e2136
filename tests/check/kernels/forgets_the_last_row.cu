// grid: 3  block: 8
// args: [{"name": "y", "type": "i32", "size": 32, "expect": 7}]
// finds: wrong y[24] was never written, 7 was expected
__global__ void sevens(int* y) {
  y[blockIdx.x * 8 + threadIdx.x] = 7;
}
