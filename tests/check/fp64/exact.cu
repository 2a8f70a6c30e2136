// grid: 2  block: 64
// args: [{"name": "x", "type": "f32", "size": 128, "fill": "iota"}, {"name": "y", "type": "f32", "size": 128}, {"name": "z", "type": "f64", "size": 128}, {"name": "sum", "type": "f32", "size": 1, "fill": 0}, {"name": "h", "type": "bf16", "size": 128}]
// Whole numbers stay exact; what is in double already is the same.
#include <cuda_bf16.h>
__global__ void exact(const float* x, float* y, double* z, float* sum, __nv_bfloat16* h) {
  __shared__ float line[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  line[threadIdx.x] = x[i] * 3 - 7;
  __syncthreads();
  y[i] = fmaxf(line[63 - threadIdx.x], 5.0f) + __shfl_xor_sync(~0u, x[i], 1);
  double d = x[i] + 0.3;
  for (int k = 0; k < 5; ++k) d = sqrt(d * d + 1 / d) - sin(d);
  z[i] = d;
  atomicAdd(sum, x[i]);
  h[i] = __float2bfloat16(x[i]);
}
