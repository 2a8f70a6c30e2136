// grid: 5  block: 64
// args: [{"type": "i32", "size": 320}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 10}]
// Every thread fences its own writes, before the barrier.
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i * 64 + 63 - threadIdx.x];
  y[threadIdx.x] = sum;
}
