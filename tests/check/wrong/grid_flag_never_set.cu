// grid: 2  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 2}]
// finds: deadlock at 6
__global__ void wait(volatile int* flag, int* y) {
  if (threadIdx.x == 0)
    while (*flag == 0) __nanosleep(100);
  __syncthreads();
  y[blockIdx.x] = 1;
}
