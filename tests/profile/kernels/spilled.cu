// 56 live values in the 32 registers that 2048 threads on an SM leave: most of them lie in local memory. With 64
// registers, those of one CTA, none do.
// grid: 108  block: 1024  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 110592, "fill": 1}, {"name": "y", "type": "f32", "size": 110592}]
// limiter: local memory
// slow: -DCTAS=2  fast: -DCTAS=1  gain: 2
#ifndef CTAS
#define CTAS 2
#endif
__global__ void __launch_bounds__(1024, CTAS) mix(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[56];
#pragma unroll
  for (int k = 0; k < 56; ++k) v[k] = x[i] + k;
#pragma unroll 1
  for (int round = 0; round < 16; ++round) {
#pragma unroll
    for (int k = 0; k < 56; ++k) v[k] = v[k] * v[(k + 23) % 56] + 0.5f;  // <- here
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 56; ++k) sum += v[k];
  y[i] = sum;
}
