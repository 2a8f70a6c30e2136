// The exponentials of a softmax whose scores lie in registers.
// grid: 864  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 221184, "fill": 1}, {"name": "y", "type": "f32", "size": 221184}]
// limiter: throughput of the XU pipe
__global__ void softmax(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float score[8], sum = 0, most = 0;
  for (int k = 0; k < 8; ++k) score[k] = x[i] * k;
#pragma unroll 1
  for (int tile = 0; tile < 64; ++tile) {
    most += 0.25f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float e = 0;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(score[k] - most));  // <- here
      sum += e;
    }
  }
  y[i] = sum;
}
