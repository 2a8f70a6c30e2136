// grid: 2  block: 32
// args: [{"type": "i32", "size": 32}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 32, "expect": "iota"}]
// with grid_flag_of_block_scope: race
__global__ void pass(int* box, int* ready, int* y) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(ready) : "memory");
    // edit grid_flag_of_block_scope: gpu => cta
  } else {
    int seen = 0;
    while (!seen) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
    y[threadIdx.x] = box[threadIdx.x];
  }
}
