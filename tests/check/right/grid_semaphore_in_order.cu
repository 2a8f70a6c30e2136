// grid: 5  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "f32", "size": 64, "fill": 0, "expect": 5}]
// with grid_semaphore_without_release: race at 10
//   grid: 3
__global__ void add(int* semaphore, float* y) {
  int state = 0;
  while (__syncthreads_and(state != blockIdx.x))
    if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(semaphore));
  __syncthreads();
  y[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(semaphore), "r"(blockIdx.x + 1));
  // edit grid_semaphore_without_release: release => relaxed
}
