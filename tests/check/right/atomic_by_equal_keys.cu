// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "bins", "type": "i32", "size": 8, "fill": 0, "expect": 8}]
__global__ void count(const int* x, int* bins) {
  const int key = x[threadIdx.x] % 8;
  const unsigned same = __match_any_sync(~0u, key);
  if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&bins[key], __popc(same));
}
