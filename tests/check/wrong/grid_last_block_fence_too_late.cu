// grid: 6  block: 64
// args: [{"type": "f32", "size": 6}, {"type": "u32", "size": 1, "fill": 0}, {"type": "f32", "size": 1}]
// finds: race at 12
__global__ void sum(float* parts, unsigned* done, float* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x + 1;
    last = atomicAdd(done, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  float sum = last && threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0;
  if (last && threadIdx.x == 0) *y = sum;
}
