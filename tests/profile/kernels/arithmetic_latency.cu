// One chain of dependent additions in each of four warps of an SM.
// grid: 108  block: 128  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 13824}, {"type": "f32", "value": 0.5}]
// limiter: latency of arithmetic
__global__ void chain(float* y, float p) {
  float x = threadIdx.x;
#pragma unroll 32
  for (int k = 0; k < 2048; ++k) x = x * p + 1;  // <- here
  y[blockIdx.x * 128 + threadIdx.x] = x;
}
