// grid: 4  block: 64
// args: [{"type": "i32", "size": 12}, {"type": "u32", "size": 3, "fill": 0}, {"name": "y", "type": "i32", "size": 3, "expect": [6, 10, 14]}]
__global__ void sum(int* parts, unsigned* done, int* y) {
  __shared__ bool last;
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) {
      parts[round * 4 + blockIdx.x] = blockIdx.x + round;
      __threadfence();
      last = atomicAdd(done + round, 1) == gridDim.x - 1;
      __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 33) y[round] = parts[round * 4] + parts[round * 4 + 1] + parts[round * 4 + 2] + parts[round * 4 + 3];
    __syncthreads();
  }
}
