// grid: 1  block: 64
// args: [{"type": "i32", "size": 256, "fill": 2}, {"name": "y", "type": "i32", "size": 64, "expect": 8}]
#include <cuda/pipeline>
__global__ void stream(const int* x, int* y) {
  __shared__ int box[2][64];
  auto pipe = cuda::make_pipeline();
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    if (i < 4) {
      pipe.producer_acquire();
      cuda::memcpy_async(&box[i % 2][threadIdx.x], x + 64 * i + threadIdx.x, sizeof(int), pipe);
      pipe.producer_commit();
    }
    if (i == 0) continue;
    if (i < 4) cuda::pipeline_consumer_wait_prior<1>(pipe);
    else cuda::pipeline_consumer_wait_prior<0>(pipe);
    sum += box[(i - 1) % 2][threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}
