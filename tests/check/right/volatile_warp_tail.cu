// grid: 2  block: 128
// args: [{"name": "x", "type": "f32", "size": 256, "fill": 1}, {"name": "y", "type": "f32", "size": 2, "expect": 128}]
__device__ void tail(volatile float* s, int t) {
  for (int d = 32; d > 0; d /= 2) {
    const float v = s[t] + s[t + d];
    __syncwarp();
    if (t < d) s[t] = v;
    __syncwarp();
  }
}
__global__ void sum(const float* x, float* y) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 64) s[threadIdx.x] += s[threadIdx.x + 64];
  __syncthreads();
  if (threadIdx.x < 32) tail(s, threadIdx.x);
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
