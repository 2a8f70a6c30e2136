// grid: 5  block: 64
// args: [{"type": "i32", "size": 320}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 10}]
// One fence after the barrier publishes what all threads of the block wrote.
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  int sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i * 64 + 63 - threadIdx.x];
  y[threadIdx.x] = sum;
}
