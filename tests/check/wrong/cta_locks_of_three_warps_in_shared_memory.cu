// grid: 2  block: 96
// args: [{"type": "i32", "size": 6}]
// finds: deadlock at 5
// Locks in shared memory; the third warp closes the ring, and only in its second round.
__device__ void take(int* lock) { while (atomicExch(lock, 1) != 0) {} __threadfence_block(); }
__device__ void give(int* lock) { __threadfence_block(); atomicExch(lock, 0); }
__global__ void ring(int* y) {
  __shared__ int locks[3], sums[3];
  if (threadIdx.x < 3) locks[threadIdx.x] = sums[threadIdx.x] = 0;
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < 2; ++i) {
      const int first = warp == 2 && i == 0 ? 0 : warp, second = warp == 2 && i == 0 ? 2 : (warp + 1) % 3;
      take(&locks[first]);
      take(&locks[second]);
      sums[first] += 1;
      sums[second] += 1;
      give(&locks[second]);
      give(&locks[first]);
    }
  __syncthreads();
  if (threadIdx.x < 3) y[3 * blockIdx.x + threadIdx.x] = sums[threadIdx.x];
}
