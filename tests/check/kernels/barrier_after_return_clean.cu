// A barrier does not wait for threads that have returned; half of the second warp returns at once.
// grid: 1  block: 64
// args: [{"type": "i32", "size": 64, "fill": 0}, {"type": "i32", "value": 40}]
__global__ void guarded(int* y, int n) {
  __shared__ int x[64];
  if (threadIdx.x >= n) return;
  x[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = x[n - 1 - threadIdx.x];
}
