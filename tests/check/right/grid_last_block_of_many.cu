// grid: 3000  block: 32
// args: [{"type": "i32", "size": 3000}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 3000}]
__global__ void sum(int* parts, unsigned* done, int* y) {
  if (threadIdx.x == 0) parts[blockIdx.x] = 1;
  int ticket = 0;
  if (threadIdx.x == 0) {
    __threadfence();
    ticket = atomicAdd(done, 1);
    __threadfence();
  }
  if (__shfl_sync(~0u, ticket, 0) != gridDim.x - 1) return;
  __syncwarp();
  int sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += 32) sum += parts[i];
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x == 0) *y = sum;
}
