// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
// with cta_clear_then_atomics: race at 15
//   args: [{"type": "i32", "size": 64, "fill": "iota"}, {"type": "i32", "size": 8}]
//   Warp 0 clears counters that both warps then change by atomics, with no barrier between: warp 1 may count before the
//   counter is cleared.
// with cta_lanes_histogram: race at 15
//   block: 32
__global__ void k(const int* x, int* y) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  __syncthreads();
  // edit cta_clear_then_atomics:
  atomicAdd(&bins[x[t] % 8], 1);
  // edit cta_lanes_histogram: bins[x[t] % 8]++;
  __syncthreads();
  if (t < 8) y[t] = bins[t];
}
