// grid: 4  block: 64
// args: [{"name": "x", "type": "f32", "size": 256, "fill": 1}, {"name": "y", "type": "f32", "size": 256, "expect": 3, "ignore": [0, 255]}]
__global__ void stencil(const float* x, float* y) {
  __shared__ float s[66];
  const int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x + 1] = x[i];
  if (threadIdx.x == 0) s[0] = i > 0 ? x[i - 1] : 0;
  if (threadIdx.x == 63) s[65] = i < 255 ? x[i + 1] : 0;
  __syncthreads();
  y[i] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}
