// grid: 4  block: 64
// args: [{"type": "i32", "size": 256}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 6}]
#include <cuda/atomic>
#include <cuda/barrier>
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> together;
  __shared__ bool last;
  if (threadIdx.x == 0) init(&together, 64);
  __syncthreads();
  parts[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;
  together.arrive_and_wait();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*done);
    last = counter.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  together.arrive_and_wait();
  if (!last) return;
  int v = 0;
  for (int i = 0; i < 4; ++i) v += parts[i * 64 + 63 - threadIdx.x];
  y[threadIdx.x] = v;
}
