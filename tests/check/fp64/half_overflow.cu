// grid: 1  block: 32
// args: [{"name": "x", "type": "f16", "size": 32, "fill": 300}, {"name": "y", "type": "f32", "size": 32, "expect": 300}]
#include <cuda_fp16.h>
__global__ void norm(const __half* x, float* y) {
  const __half square = __hmul(x[threadIdx.x], x[threadIdx.x]);
  y[threadIdx.x] = sqrtf(__half2float(square));
}
