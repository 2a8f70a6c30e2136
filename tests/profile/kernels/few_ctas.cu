// 20 CTAs leave 88 of 108 SMs without work.
// grid: 20  block: 256  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 5120}]
// limiter: parallelism: 20 CTAs for 108 SMs
__global__ void poly(float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i;
#pragma unroll 16
  for (int k = 0; k < 1024; ++k) a = a * 0.5f + 1;  // <- here
  y[i] = a;
}
