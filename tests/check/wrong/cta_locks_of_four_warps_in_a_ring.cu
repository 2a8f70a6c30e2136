// grid: 1  block: 128
// args: [{"type": "i32", "size": 4, "fill": 0}, {"type": "i32", "size": 4, "fill": 0}]
// finds: deadlock at 5
// Each warp takes two of four locks. Only if all have taken their first one, none gets its second.
__device__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
__device__ void give(int* lock) { __threadfence(); atomicExch(lock, 0); }
__global__ void dine(int* locks, int* meals) {
  if (threadIdx.x % 32) return;
  const int left = threadIdx.x / 32, right = (left + 1) % 4;
  for (int i = 0; i < 3; ++i) {
    take(&locks[left]);
    take(&locks[right]);
    meals[left] += 1;
    meals[right] += 1;
    give(&locks[right]);
    give(&locks[left]);
  }
}
