// grid: 6  block: 32
// args: [{"type": "u32", "size": 1, "fill": 0}, {"type": "i32", "size": 192}, {"name": "y", "type": "i32", "size": 192, "expect": 4}]
__global__ void take(unsigned* used, int* pool, int* y) {
  unsigned at = 0;
  if (threadIdx.x == 0) at = atomicAdd(used, 32);
  at = __shfl_sync(~0u, at, 0);
  pool[at + threadIdx.x] = 4;
  __syncwarp();
  y[blockIdx.x * 32 + threadIdx.x] = pool[at + (threadIdx.x + 1) % 32];
}
