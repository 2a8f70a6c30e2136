// grid: 700  block: 64
// args: [{"type": "i32", "size": 701, "fill": 0}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 700, "expect": "iota"}]
// The order of the tiles is that of the tickets, whatever block takes them.
__global__ void scan(volatile int* ready, unsigned* next, int* y) {
  __shared__ unsigned tile;
  if (threadIdx.x == 0) {
    tile = atomicAdd(next, 1);
    while (tile && !ready[tile - 1]) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 32) y[tile] = tile ? y[tile - 1] + 1 : 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    ready[tile] = 1;
  }
}
