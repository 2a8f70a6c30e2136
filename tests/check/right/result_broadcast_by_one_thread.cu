// grid: 2  block: 96
// args: [{"name": "x", "type": "f32", "size": 192, "fill": "iota"}, {"name": "y", "type": "f32", "size": 192}]
__global__ void subtract_first(const float* x, float* y) {
  __shared__ float first;
  if (threadIdx.x == 95) first = x[blockIdx.x * 96];
  __syncthreads();
  y[blockIdx.x * 96 + threadIdx.x] = x[blockIdx.x * 96 + threadIdx.x] - first;
}
