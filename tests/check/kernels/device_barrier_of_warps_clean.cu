// grid: 2  block: 64
// args: [{"name": "box", "type": "i32", "size": 128}, {"name": "ready", "type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 128}]
// leaves open: orders
// All warps of the grid wait for each other. The last warp to arrive, of any block, sets a flag.
__global__ void swap(int* box, int* ready, int* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  box[i] = i;
  __threadfence();
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    if (atomicAdd(ready, 1) == 3) {
      __threadfence();
      atomicExch(ready + 1, 1);
    }
    while (*static_cast<volatile int*>(ready + 1) == 0) {
    }
    __threadfence();
  }
  __syncwarp();
  y[i] = box[i ^ 32];
}
