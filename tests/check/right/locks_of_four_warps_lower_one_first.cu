// grid: 1  block: 128
// args: [{"type": "i32", "size": 4, "fill": 0}, {"type": "i32", "size": 4, "fill": 0}]
// leaves open: orders
// Each warp takes the lower one of its two locks first, so that one of them can always go on.
// with cta_locks_of_four_warps_in_a_ring: deadlock at 7
//   Each warp takes two of four locks. Only if all have taken their first one, none gets its second.
__device__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
__device__ void give(int* lock) { __threadfence(); atomicExch(lock, 0); }
__global__ void dine(int* locks, int* meals) {
  if (threadIdx.x % 32) return;
  const int warp = threadIdx.x / 32, left = min(warp, (warp + 1) % 4), right = max(warp, (warp + 1) % 4);
  // edit cta_locks_of_four_warps_in_a_ring: const int left = threadIdx.x / 32, right = (left + 1) % 4;
  for (int i = 0; i < 3; ++i) {
    take(&locks[left]);
    take(&locks[right]);
    meals[left] += 1;
    meals[right] += 1;
    give(&locks[right]);
    give(&locks[left]);
  }
}
