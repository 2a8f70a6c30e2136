// grid: 5  block: 96
// args: [{"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 96, "fill": 0, "expect": 5}]
// One thread holds the lock for all of its block.
__global__ void count(int* lock, int* y) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1)) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  y[95 - threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(lock, 0);
  }
}
