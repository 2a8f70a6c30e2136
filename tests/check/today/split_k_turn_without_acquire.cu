// Four blocks add their parts of a sum to y one after another, in the order of a turn that each passes on.
// The turn is polled by an acquiring load.
// grid: 4  block: 64
// args: [{"type": "i32", "size": 256, "fill": 2}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "fill": 1, "expect": 9}]
// leaves open: orders
// with split_k_turn_without_acquire: race at 26
//   The turn is polled by a relaxed load, which orders nothing after the previous block's stores; the barrier of the
//   block behind it is no fence of the device. NVIDIA/cutlass issue 3117 (relaxed spin before a barrier), issues 1026
//   and 2775 (the semaphore of serial split-K). PTX ISA, "Release and Acquire Patterns".
__device__ int look(const int* turn) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(turn)) : "memory");
  // edit split_k_turn_without_acquire: acquire => relaxed
  return value;
}

__device__ void pass_on(int* turn, int to) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(turn)), "r"(to) : "memory");
}

__global__ void split_k(const int* parts, int* turn, int* y) {
  const int k = blockIdx.x, part = parts[k * 64 + threadIdx.x];
  if (threadIdx.x == 0)
    while (look(turn) != k) __nanosleep(40);
  __syncthreads();
  y[threadIdx.x] += part;
  __syncthreads();
  if (threadIdx.x == 0) pass_on(turn, k + 1);
}
