// grid: 6  block: 96
// args: [{"type": "i32", "size": 6}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 15}]
// with grid_last_block_fence_of_the_block: race at 22
// with grid_last_block_fence_too_late: race at 22
// with grid_last_block_no_fence: race at 22
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x;
    __threadfence();
    // edit grid_last_block_fence_of_the_block: __threadfence_block();
    // edit grid_last_block_fence_too_late:
    // edit grid_last_block_no_fence:
    last = atomicAdd(done, 1) == gridDim.x - 1;
    __threadfence();
    // edit grid_last_block_fence_of_the_block:
    // edit grid_last_block_no_fence:
  }
  __syncthreads();
  if (last && threadIdx.x == 64) {
    int sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
    *y = sum;
  }
}
