// 108 SMs hold 864 CTAs of this size at a time: 45 CTAs of 909 run in a second wave.
// grid: 909  block: 256  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 232704}]
// limiter: tail of the grid
__global__ void poly(float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = i + 1, c = i + 2, d = i + 3;
#pragma unroll 16
  for (int k = 0; k < 512; ++k) {
    a = a * 0.5f + 1, b = b * 0.25f + 2;
    c = c * 0.5f + 3, d = d * 0.25f + 4;  // <- here
  }
  y[i] = a + b + c + d;
}
