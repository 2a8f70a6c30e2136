// grid: 1  block: 96
// args: [{"name": "x", "type": "i32", "size": 96, "fill": "iota"}, {"name": "y", "type": "i32", "size": 3, "expect": [48, 1, 0]}]
__global__ void votes(const int* x, int* y) {
  const int v = x[threadIdx.x];
  const int even = __syncthreads_count(v % 2 == 0), any = __syncthreads_or(v == 95), all = __syncthreads_and(v < 95);
  if (threadIdx.x == 0) {
    y[0] = even;
    y[1] = any != 0;
    y[2] = all != 0;
  }
}
