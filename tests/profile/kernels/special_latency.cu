// A chain of square roots by one warp of each SM.
// grid: 108  block: 32  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 3456}]
// limiter: latency of special functions
__global__ void roots(float* y) {
  float x = threadIdx.x + 2;
#pragma unroll 8
  for (int k = 0; k < 512; ++k)
    asm volatile("sqrt.approx.ftz.f32 %0, %0;" : "+f"(x));  // <- here
  y[blockIdx.x * 32 + threadIdx.x] = x;
}
