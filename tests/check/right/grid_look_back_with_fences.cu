// grid: 8  block: 32
// args: [{"type": "i32", "size": 8}, {"type": "i32", "size": 8, "fill": 0}, {"name": "y", "type": "i32", "size": 256, "expect": "iota"}]
// with grid_look_back_no_fence: race at 11
__global__ void scan(int* prefix, volatile int* ready, int* y) {
  int before = 0;
  if (threadIdx.x == 0) {
    if (blockIdx.x) {
      while (!ready[blockIdx.x - 1]) __nanosleep(20);
      __threadfence();
      // edit grid_look_back_no_fence:
      before = prefix[blockIdx.x - 1];
    }
    prefix[blockIdx.x] = before + 32;
    __threadfence();
    // edit grid_look_back_no_fence:
    ready[blockIdx.x] = 1;
  }
  y[blockIdx.x * 32 + threadIdx.x] = __shfl_sync(~0u, before, 0) + threadIdx.x;
}
