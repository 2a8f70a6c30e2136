// Adds up eight rows of 64 numbers that the threads of a block load two rows ahead through cuda::pipeline.
// The stage is read, then released.
// grid: 1  block: 64
// args: [{"type": "i32", "size": 512, "fill": 1}, {"name": "y", "type": "i32", "size": 64, "expect": 8}]
// leaves open: orders
// with pipeline_stage_released_early: race
//   The stage is released before it is read, so that another thread's copy of the row after next may overwrite it. CUDA
//   C++ Programming Guide, "Asynchronous Data Copies using cuda::pipeline" (consumer_release after the use).
#include <cooperative_groups.h>

#include <cuda/pipeline>

__global__ void sum_rows(const int* x, int* y) {
  __shared__ __align__(16) int box[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int i = 0, next = 0; i < 8; ++i) {
    for (; next < 8 && next < i + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(&box[next % 2][threadIdx.x], x + 64 * next + threadIdx.x, sizeof(int), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    // edit pipeline_stage_released_early: pipe.consumer_wait(); pipe.consumer_release();
    sum += box[i % 2][63 - threadIdx.x];
    pipe.consumer_release();
    // edit pipeline_stage_released_early:
  }
  y[threadIdx.x] = sum;
}
