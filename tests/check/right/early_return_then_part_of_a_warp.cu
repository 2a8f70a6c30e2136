// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 50, "fill": 1}, {"name": "y", "type": "f32", "size": 1, "expect": 50}, {"name": "n", "type": "i32", "value": 50}]
__global__ void sum(const float* x, float* y, int n) {
  __shared__ float s[2];
  const unsigned mask = __ballot_sync(~0u, threadIdx.x < n);
  if (threadIdx.x < n) {
    float v = x[threadIdx.x];
    const int lane = threadIdx.x & 31, lanes = __popc(mask);
    for (int d = 16; d > 0; d /= 2) {
      const float other = __shfl_sync(mask, v, min(lane + d, lanes - 1));
      if (lane + d < lanes) v += other;
    }
    if (lane == 0) s[threadIdx.x / 32] = v;
  }
  __syncthreads();
  if (threadIdx.x == 0) *y = s[0] + s[1];
}
