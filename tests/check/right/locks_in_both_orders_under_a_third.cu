// grid: 4  block: 32
// args: [{"type": "i32", "size": 3, "fill": 0}, {"name": "n", "type": "i32", "size": 2, "fill": 0}]
// leaves open: orders
// Two locks are taken in both orders, but only by who holds a third one.
__device__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
__device__ void give(int* lock) { __threadfence(); atomicExch(lock, 0); }
__global__ void both(int* locks, int* n) {
  if (threadIdx.x) return;
  const int first = blockIdx.x % 2, second = 1 - first;
  take(&locks[2]);
  take(&locks[first]);
  take(&locks[second]);
  n[0] += 1;
  n[1] += 1;
  give(&locks[second]);
  give(&locks[first]);
  give(&locks[2]);
}
