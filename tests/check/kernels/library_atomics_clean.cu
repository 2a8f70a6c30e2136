// grid: 2  block: 64
// args: [{"name": "y", "type": "i32", "size": 2, "fill": 0, "expect": [128, -1]}]
#include <cuda/atomic>
__global__ void sums(int* y) {
  __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> seen;
  if (threadIdx.x == 0) seen.store(0);
  __syncthreads();
  seen.fetch_or(1u << (threadIdx.x % 32), cuda::memory_order_acq_rel);
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device> total(y[0]), bits(y[1]);
  total.fetch_add(1, cuda::memory_order_relaxed);
  if (threadIdx.x == 0) bits.fetch_or(seen.load(cuda::memory_order_acquire));
}
