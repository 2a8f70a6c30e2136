// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 6
__global__ void k(int* y) {
  y[threadIdx.x] = threadIdx.x;
  const int other = y[threadIdx.x ^ 1];
  y[threadIdx.x + 32] = other;
}
