// A matrix of 4 MB, which L2 holds, is read by columns, over and over: 32 lines a request.
// grid: 1728  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 1048576}, {"name": "y", "type": "f32", "size": 442368}]
// limiter: L1|L2
__global__ void sum(const float* x, float* y) {
  const unsigned row = threadIdx.x, first = blockIdx.x % 32 * 32;
  float s = 0;
  for (unsigned k = 0; k < 1024; k += 8)
    s += x[row * 1024 + (first + 8 * blockIdx.x + k) % 1024] + x[(row + 256) * 1024 + (first + k) % 1024];  // <- here
  y[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
