// grid: 4  block: 32
// args: [{"type": "i32", "size": 4}, {"type": "i32", "size": 4}]
// finds: race at 8
__global__ void __cluster_dims__(2, 1, 1) swap(int* box, int* y) {
  if (threadIdx.x == 0) box[blockIdx.x] = blockIdx.x;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) y[blockIdx.x] = box[blockIdx.x ^ 1];
}
