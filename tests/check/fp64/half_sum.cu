// grid: 1  block: 32
// args: [{"name": "x", "type": "f16", "size": 128, "fill": 0.3}, {"name": "y", "type": "f16", "size": 32, "expect": 38.40625, "relative_tolerance": 1e-4}]
#include <cuda_fp16.h>
__global__ void total(const __half* x, __half* y) {
  __half2 sum = __float2half2_rn(0);
  for (int i = 0; i < 128; i += 2) sum = __hadd2(sum, *reinterpret_cast<const __half2*>(x + i));
  y[threadIdx.x] = __hadd(__low2half(sum), __high2half(sum));
}
