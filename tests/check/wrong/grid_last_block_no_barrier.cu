// grid: 4  block: 64
// args: [{"type": "i32", "size": 256}, {"type": "u32", "size": 1, "fill": 0}, {"type": "i32", "size": 64}]
// finds: race at 13
// The fence of thread 0 says nothing about the writes of the other warp.
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) for (int i = 0; i < 4; ++i) y[threadIdx.x] = parts[i * 64 + threadIdx.x];
}
