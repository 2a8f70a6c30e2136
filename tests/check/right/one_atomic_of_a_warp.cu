// grid: 2  block: 64  leaves open: orders
// args: [{"name": "x", "type": "i32", "size": 128, "fill": "iota"}, {"name": "n", "type": "i32", "size": 1, "fill": 0, "expect": 64}, {"name": "y", "type": "i32", "size": 128}]
__global__ void keep_even(const int* x, int* n, int* y) {
  const int v = x[blockIdx.x * 64 + threadIdx.x], lane = threadIdx.x & 31;
  const unsigned kept = __ballot_sync(~0u, v % 2 == 0);
  int first = 0;
  if (lane == 0) first = atomicAdd(n, __popc(kept));
  first = __shfl_sync(~0u, first, 0);
  if (v % 2 == 0) y[first + __popc(kept & ((1u << lane) - 1))] = v;
}
