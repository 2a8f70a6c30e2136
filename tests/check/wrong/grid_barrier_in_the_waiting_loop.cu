// grid: 3  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 3}]
// finds: deadlock at 8
// A semaphore as CUTLASS has it, whose turn 1 never comes.
__global__ void wait(int* semaphore, int* y) {
  int state = 0;
  while (__syncthreads_and(state != blockIdx.x))
    if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(semaphore));
  y[blockIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(semaphore), "r"(blockIdx.x + 2));
}
