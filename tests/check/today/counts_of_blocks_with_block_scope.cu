// Four blocks count how often each of eight values occurs, in one table in device memory.
// The additions have the scope of the device.
// grid: 4  block: 128
// args: [{"type": "i32", "size": 512, "fill": 5}, {"name": "y", "type": "i32", "size": 8, "fill": 0, "expect": [0, 0, 0, 0, 0, 512, 0, 0]}]
// with counts_of_blocks_with_block_scope: race at 18
//   The additions have the scope of a block, so those of different blocks are no atomics to each other: counts are
//   lost. The kind of NVIDIA/cutlass issue 3117 (an order too weak for other blocks). PTX ISA, "Morally Strong
//   Operations".
#include <cuda/atomic>

constexpr auto kScope = cuda::thread_scope_device;
// edit counts_of_blocks_with_block_scope: constexpr auto kScope = cuda::thread_scope_block;

constexpr int kValues = 8;

__device__ void count_one(int& place) {
  cuda::atomic_ref<int, kScope> count(place);
  count.fetch_add(1, cuda::std::memory_order_relaxed);
}

__global__ void histogram(const int* x, int* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = x[i];
  if (0 <= value && value < kValues) count_one(y[value]);
}
