// grid: 1  block: 64
// args: [{"type": "i32", "size": 64, "fill": "iota"}, {"type": "i32", "size": 8}]
// finds: race at 10
// Warp 0 clears counters that both warps then change by atomics, with no barrier between: warp 1 may count before the
// counter is cleared.
__global__ void k(const int* x, int* y) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  atomicAdd(&bins[x[t] % 8], 1);
  __syncthreads();
  if (t < 8) y[t] = bins[t];
}
