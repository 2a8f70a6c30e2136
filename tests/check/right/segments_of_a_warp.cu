// grid: 1  block: 32
// args: [{"name": "head", "type": "i32", "size": 32, "values": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}, {"name": "y", "type": "i32", "size": 32, "expect": [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]}]
__global__ void position(const int* head, int* y) {
  int v = 1, starts = head[threadIdx.x];
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, v, d), other_starts = __shfl_up_sync(~0u, starts, d);
    if (threadIdx.x >= d && !starts) {
      v += other;
      starts = other_starts;
    }
  }
  y[threadIdx.x] = v;
}
