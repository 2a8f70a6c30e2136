// grid: 1  block: 128
// args: [{"name": "x", "type": "f32", "size": 128, "fill": "iota"}, {"name": "y", "type": "f32", "size": 2, "expect": [8128, 127]}]
__device__ float sum(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  const float all = s[0];
  __syncthreads();  // the next call writes s[0]
  return all;
}
__global__ void two_sums(const float* x, float* y) {
  __shared__ float s[128];
  const float a = sum(x[threadIdx.x], s), b = sum(threadIdx.x == 127 ? x[127] : 0, s);
  if (threadIdx.x == 0) {
    y[0] = a;
    y[1] = b;
  }
}
