// grid: 2  block: 64
// args: [{"name": "h", "type": "f16", "size": 2, "fill": 0, "expect": [128, 64]}, {"name": "b", "type": "bf16", "size": 2, "fill": 0, "expect": [128, 64]}]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void sums(__half2* h, __nv_bfloat162* b) {
  atomicAdd(h, __floats2half2_rn(1.0f, 0.5f));
  atomicAdd(b, __floats2bfloat162_rn(1.0f, 0.5f));
}
