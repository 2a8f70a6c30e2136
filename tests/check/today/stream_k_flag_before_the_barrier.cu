// Block 1 computes the second half of a tile's sum and block 0 adds it to its own, when block 1 has set a flag.
// A barrier of the block lies between the fences and the flag.
// grid: 2  block: 128
// args: [{"type": "i32", "size": 256, "fill": 3}, {"name": "parts", "type": "i32", "size": 128}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 128, "expect": 6}]
// leaves open: orders
// with stream_k_flag_before_the_barrier: race
//   Each thread of block 1 fences its own part, but thread 0 sets the flag without waiting for the other warps: block 0
//   may read parts that are not written yet. NVIDIA/Fuser pull request 2391 discusses why the barrier is needed beside
//   the fence. PTX ISA, "Release and Acquire Patterns".
#include <cuda/atomic>

__global__ void fix_up(const int* x, int* parts, unsigned* flag, int* y) {
  const int t = threadIdx.x;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> set(*flag);
  const int part = x[blockIdx.x * 128 + t];
  if (blockIdx.x == 1) {
    parts[t] = part;
    __threadfence();
    __syncthreads();
    // edit stream_k_flag_before_the_barrier:
    if (t == 0) set.store(1, cuda::std::memory_order_release);
  } else {
    if (t == 0)
      while (!set.load(cuda::std::memory_order_acquire)) __nanosleep(20);
    __syncthreads();
    y[t] = part + parts[t];
  }
}
