// grid: 2  block: 128
// args: [{"name": "x", "type": "f32", "size": 512, "fill": 1}, {"name": "y", "type": "f32", "size": 512, "expect": 0.00390625}]
__global__ void softmax(const float* x, float* y) {
  __shared__ float most[128], sum[128];
  const int t = threadIdx.x;
  const float *row = x + blockIdx.x * 256, a = row[t], b = row[t + 128], m = fmaxf(a, b);
  most[t] = m;
  sum[t] = expf(a - m) + expf(b - m);
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) {
      const float both = fmaxf(most[t], most[t + d]);
      sum[t] = sum[t] * expf(most[t] - both) + sum[t + d] * expf(most[t + d] - both);
      most[t] = both;
    }
    __syncthreads();
  }
  y[blockIdx.x * 256 + t] = expf(a - most[0]) / sum[0];
  y[blockIdx.x * 256 + t + 128] = expf(b - most[0]) / sum[0];
}
