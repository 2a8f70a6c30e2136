// grid: 9  block: 32
// args: [{"name": "y", "type": "i32", "size": 1, "fill": 0, "expect": 1}]
__global__ void set(int* y) {
  if (blockIdx.x % 2) *y = 1;
}
