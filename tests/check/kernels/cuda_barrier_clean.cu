// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "expect": "iota"}]
#include <cuda/barrier>
__global__ void turn(int* y) {
  __shared__ int box[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> all;
  if (threadIdx.x == 0) init(&all, 64);
  __syncthreads();
  box[63 - threadIdx.x] = 63 - threadIdx.x;
  all.arrive_and_wait();
  y[threadIdx.x] = box[threadIdx.x];
}
