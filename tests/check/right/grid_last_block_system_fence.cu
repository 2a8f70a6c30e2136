// grid: 6  block: 32
// args: [{"type": "i32", "size": 6}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 15}]
__global__ void sum(int* parts, unsigned* done, int* y) {
  if (threadIdx.x) return;
  parts[blockIdx.x] = blockIdx.x;
  __threadfence_system();
  const bool last = atomicAdd_system(done, 1) == gridDim.x - 1;
  __threadfence_system();
  int sum = 0;
  for (int i = 0; last && i < gridDim.x; ++i) sum += parts[i];
  if (last) *y = sum;
}
