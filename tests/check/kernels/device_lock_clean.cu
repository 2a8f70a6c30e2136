// grid: 1  block: 128
// args: [{"name": "lock", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 2, "expect": [4, 8]}]
// leaves open: orders
__global__ void count(int* lock, int* y) {
  if (threadIdx.x == 0) *lock = y[0] = y[1] = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    y[0] += 1;
    y[1] += 2;
    __threadfence();
    atomicExch(lock, 0);
  }
}
