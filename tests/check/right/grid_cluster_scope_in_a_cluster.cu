// grid: 4  block: 32
// args: [{"type": "i32", "size": 2}, {"type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 2, "expect": 3}]
// with grid_cluster_scope_between_clusters: race
__global__ void __cluster_dims__(2, 1, 1) pass(int* box, int* flag, int* y) {
  if (threadIdx.x) return;
  const int c = blockIdx.x / 2;
  // edit grid_cluster_scope_between_clusters: / => %
  int seen = 0;
  if (blockIdx.x % 2 == 0) {
  // edit grid_cluster_scope_between_clusters: blockIdx.x % 2 == 0 => blockIdx.x < 2
    box[c] = 3;
    asm volatile("st.release.cluster.global.s32 [%0], 1;" ::"l"(flag + c) : "memory");
  } else {
    while (!seen) asm volatile("ld.acquire.cluster.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag + c) : "memory");
    y[c] = box[c];
  }
}
