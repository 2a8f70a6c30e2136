// grid: 4  block: 32
// args: [{"type": "i32", "size": 8, "fill": 0}, {"type": "i32", "size": 8, "fill": 100}]
// finds: deadlock at 5
// Four blocks move amounts between accounts, source first. In one step of eight two blocks want a pair in both orders.
__device__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
__device__ void give(int* lock) { __threadfence(); atomicExch(lock, 0); }
__global__ void transfer(int* locks, int* money) {
  if (threadIdx.x) return;
  for (int i = 0; i < 8; ++i) {
    int from = 2 * blockIdx.x, to = from + 1;
    if (i == 5 && blockIdx.x == 1) from = 6, to = 7;
    if (i == 5 && blockIdx.x == 3) from = 7, to = 6;
    take(&locks[from]);
    take(&locks[to]);
    money[from] -= i;
    money[to] += i;
    give(&locks[to]);
    give(&locks[from]);
  }
}
