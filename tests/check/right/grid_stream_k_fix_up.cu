// grid: 4  block: 64
// args: [{"type": "f32", "size": 256}, {"type": "i32", "size": 4, "fill": 0}, {"name": "y", "type": "f32", "size": 64, "expect": 10}]
// with grid_stream_k_fix_up_without_fence: race at 24
// Block 0 adds the parts of the others in their order.
__global__ void fix_up(float* workspace, int* flag, float* y) {
  float v = blockIdx.x + 1;
  if (blockIdx.x) {
    workspace[blockIdx.x * 64 + threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      // edit grid_stream_k_fix_up_without_fence:
      atomicExch(flag + blockIdx.x, 1);
    }
    return;
  }
  for (int other = 1; other < gridDim.x; ++other) {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag + other, 0) == 0) __nanosleep(20);
      __threadfence();
      // edit grid_stream_k_fix_up_without_fence:
    }
    __syncthreads();
    v += workspace[other * 64 + threadIdx.x];
  }
  y[threadIdx.x] = v;
}
