// grid: 1  block: 64
// args: [{"name": "y", "type": "f16", "size": 64, "expect": "iota"}, {"name": "z", "type": "bf16", "size": 64, "expect": "iota"}]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void both(__half* y, __nv_bfloat16* z) {
  const int t = threadIdx.x;
  __half2 h = __halves2half2(__int2half_rn(t), __float2half(2.0f));
  h = __hfma2(h, __float2half2_rn(2.0f), __hneg2(h));
  h = __hmin2(__hmax2(h, __float2half2_rn(0.0f)), __float2half2_rn(100.0f));
  y[t] = __hgt(__high2half(h), __float2half(1.0f)) ? __low2half(h) : __float2half(-1.0f);
  const __nv_bfloat16 b = __float2bfloat16(static_cast<float>(t));
  z[t] = __hadd(__hmul(b, __float2bfloat16(0.5f)), __hdiv(b, __float2bfloat16(2.0f)));
}
