// Four independent polynomials a thread, with coefficients from registers.
// grid: 864  block: 256  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 221184}, {"type": "f32", "value": 0.5}, {"type": "f32", "value": 0.25}]
// limiter: throughput of the FMA pipe
__global__ void poly(float* y, float p, float q) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = i + 1, c = i + 2, d = i + 3;
#pragma unroll 32
  for (int k = 0; k < 512; ++k) a = a * p + q, b = b * p + q, c = c * p + q, d = d * p + q;  // <- here
  y[i] = a + b + c + d;
}
