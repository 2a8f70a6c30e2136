// grid: 4  block: 32
// args: [{"type": "i32", "size": 1}, {"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 4}]
// finds: race
__global__ void __cluster_dims__(2, 1, 1) pass(int* box, int* flag, int* y) {
  if (threadIdx.x) return;
  int seen = 0;
  if (blockIdx.x == 0) {
    *box = 3;
    asm volatile("st.release.cluster.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (blockIdx.x == 2) {
    while (!seen) asm volatile("ld.acquire.cluster.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    y[blockIdx.x] = *box;
  }
}
