// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// leaves open: orders
__global__ void k(int* y) {
  __shared__ int lock, total;
  const int t = threadIdx.x;
  if (t == 0) lock = total = 0;
  __syncthreads();
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      total += t;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  if (t == 0) y[0] = total;
}
