// The bound of the selection exceeds the bound of the assignment by one.
// grid: 1  block: 64
// args: [{"type": "i32", "size": 64, "fill": "iota"}, {"type": "i32", "size": 64}, {"type": "i32", "value": 40}]
// finds: uninitialised at 9
__global__ void selected(const int* x, int* y, int n) {
  int v;
  if (threadIdx.x < n) v = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = threadIdx.x < n + 1 ? v : 0;
}
