// grid: 3  block: 32
// args: [{"type": "i32", "size": 32}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 5}]
// with grid_fence_of_block_scope: race at 18
// with grid_flag_without_acquire: race at 18
// with grid_flag_without_release: race at 18
__global__ void pass(int* box, volatile int* ready, int* y) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = 5;
    __threadfence();
    // edit grid_fence_of_block_scope: asm volatile("fence.acq_rel.cta;" ::: "memory");
    // edit grid_flag_without_release:
    __syncwarp();
    if (threadIdx.x == 0) *ready = 1;
  } else {
    while (*ready == 0) __nanosleep(20);
    __threadfence();
    // edit grid_flag_without_acquire:
    y[blockIdx.x * 32 - 32 + threadIdx.x] = box[31 - threadIdx.x];
  }
}
