// grid: 1  block: 32
// args: [{"type": "f16", "size": 64, "fill": 0.5}, {"type": "f16", "size": 64, "fill": 2}, {"type": "f32", "size": 1, "expect": 64}]
#include <cuda_fp16.h>
__global__ void dot(const __half2* a, const __half2* b, float* out) {
  const float2 x = __half22float2(__hmul2(a[threadIdx.x], b[threadIdx.x]));
  float v = x.x + x.y;
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  if (threadIdx.x == 0) out[0] = v;
}
