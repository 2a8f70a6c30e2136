// grid: 2  block: 128
// args: [{"type": "i32", "size": 1}]
// finds: deadlock at 9
__global__ void lock_it(int* y) {
  __shared__ int lock;
  if (threadIdx.x == 0) lock = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    while (atomicCAS(&lock, 0, 1)) {
    }
  __syncthreads();
  if (threadIdx.x == 0) *y = 1;
}
