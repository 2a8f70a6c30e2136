// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[32];
  s[threadIdx.x % 32] = x[threadIdx.x % 32] * 3;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 32];
}
