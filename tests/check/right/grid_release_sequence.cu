// grid: 3  block: 32
// args: [{"type": "i32", "size": 1}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 7}]
// A relaxed read-modify-write of another block continues what block 0 released.
__global__ void pass(int* box, int* flag, int* y) {
  if (threadIdx.x) return;
  int seen = 0;
  if (blockIdx.x == 0) {
    *box = 7;
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (blockIdx.x == 1) {
    while (atomicCAS(flag, 1, 2) != 1) __nanosleep(20);
  } else {
    while (seen != 2) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    *y = *box;
  }
}
