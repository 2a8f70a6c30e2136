// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 512, "fill": "iota"}, {"name": "y", "type": "f32", "size": 64}]
#include <cuda_pipeline.h>
__global__ void sum_of_rows(const float* x, float* y) {
  __shared__ float slot[2][64];
  float sum = 0;
  __pipeline_memcpy_async(&slot[0][threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  for (int i = 0; i < 8; ++i) {
    if (i + 1 < 8) __pipeline_memcpy_async(&slot[(i + 1) % 2][threadIdx.x], &x[(i + 1) * 64 + threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += slot[i % 2][63 - threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
