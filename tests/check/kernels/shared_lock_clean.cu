// grid: 1  block: 128
// args: [{"name": "y", "type": "i32", "size": 1, "expect": 128}]
// leaves open: orders
__global__ void locked(int* y) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  for (bool done = false; !done;)
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      sum = sum + 1;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  __syncthreads();
  if (threadIdx.x == 0) *y = sum;
}
