// grid: 6  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "fill": 0, "expect": 6}]
#include <cuda/atomic>
__global__ void count(int* word, int* y) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> lock(*word);
  while (lock.exchange(1, cuda::memory_order_acquire)) {
  }
  *y += 1;
  lock.store(0, cuda::memory_order_release);
}
