// grid: 1  block: 32
// args: [{"type": "i32", "size": 32}]
// finds: partial-warp
__global__ void rotate(int* y) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_sync(0xffffffffu, v, (threadIdx.x + 1) % 16);
  __syncwarp();
  y[threadIdx.x] = v;
}
