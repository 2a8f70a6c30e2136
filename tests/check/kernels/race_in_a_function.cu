// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: race at 5
__device__ __noinline__ int neighbour(const int* box, int t) {
  return box[t % 32];
}
__global__ void swap(int* y) {
  __shared__ int box[64];
  box[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = neighbour(box, threadIdx.x);
}
