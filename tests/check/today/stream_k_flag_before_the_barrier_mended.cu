// Block 1 computes the second half of a tile's sum and block 0 adds it to its own, when block 1 has set a flag.
// A barrier of the block lies between the fences and the flag.
// grid: 2  block: 128
// args: [{"type": "i32", "size": 256, "fill": 3}, {"name": "parts", "type": "i32", "size": 128}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 128, "expect": 6}]
// finds: nothing
#include <cuda/atomic>

__global__ void fix_up(const int* x, int* parts, unsigned* flag, int* y) {
  const int t = threadIdx.x;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> set(*flag);
  const int part = x[blockIdx.x * 128 + t];
  if (blockIdx.x == 1) {
    parts[t] = part;
    __threadfence();
    __syncthreads();
    if (t == 0) set.store(1, cuda::std::memory_order_release);
  } else {
    if (t == 0)
      while (!set.load(cuda::std::memory_order_acquire)) __nanosleep(20);
    __syncthreads();
    y[t] = part + parts[t];
  }
}
