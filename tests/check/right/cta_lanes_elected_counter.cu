// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// leaves open: orders
__global__ void k(const int* x, int* y) {
  __shared__ int n;
  const int t = threadIdx.x;
  if (t == 0) n = 0;
  __syncthreads();
  const bool mine = x[t] % 2;
  const unsigned votes = __ballot_sync(~0u, mine);
  int at = 0;
  if (t % 32 == 0) at = atomicAdd(&n, __popc(votes));
  at = __shfl_sync(~0u, at, 0);
  if (mine) y[at + __popc(votes & ((1u << t % 32) - 1))] = x[t];
}
