// 64 live values in 32 registers, or in as many as they need.
// grid: 108  block: 1024  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 110592, "fill": 1}, {"name": "y", "type": "f32", "size": 110592}]
// slow: -DCTAS=2  fast: -DCTAS=1  gain: 2
__global__ void __launch_bounds__(1024, CTAS) mix(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) v[k] = x[i] + k;
#pragma unroll 1
  for (int round = 0; round < 16; ++round) {
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = v[k] * v[(k + 23) % 48] + 0.5f;
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 48; ++k) sum += v[k];
  y[i] = sum;
}
