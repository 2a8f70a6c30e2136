// grid: 5  block: 64
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "fill": 1, "expect": 32}]
// Plain loads and stores of the semaphore would race; these are volatile, with a fence on each side.
__global__ void twice(volatile int* semaphore, int* y) {
  if (threadIdx.x == 0) {
    while (*semaphore != blockIdx.x) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  y[threadIdx.x] *= 2;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *semaphore = blockIdx.x + 1;
  }
}
