// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}, {"type": "i32", "value": 40}]
// finds: divergent-barrier at 6
__global__ void guarded(int* y, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}
