// One warp on each SM adds one value after the other: each iteration waits for its load.
// grid: 108  block: 32  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 1769472, "fill": 1}, {"name": "y", "type": "f32", "size": 108}]
// limiter: latency of device memory
__global__ void reduce(const float* x, float* y) {
  float sum = 0;
  const float* own = x + blockIdx.x * 16384 + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 512; ++i) sum += own[32 * i];  // <- here
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
