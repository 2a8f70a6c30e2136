// grid: 2  block: 32
// args: [{"name": "x", "type": "i32", "size": 1000, "fill": 5, "expect": 6}, {"name": "n", "type": "i32", "value": 1000}]
__global__ void increment(int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i]++;
}
