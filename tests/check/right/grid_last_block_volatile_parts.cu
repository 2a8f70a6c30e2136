// grid: 8  block: 32
// args: [{"type": "i32", "size": 8}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 28}]
__global__ void sum(volatile int* parts, unsigned* done, int* y) {
  if (threadIdx.x) return;
  parts[blockIdx.x] = blockIdx.x;
  __threadfence();
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  int sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
  *y = sum;
}
