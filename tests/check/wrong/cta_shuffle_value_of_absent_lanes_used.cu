// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: partial-warp at 7
__global__ void k(int* y) {
  const int t = threadIdx.x;
  if (t < 8) {
    const int v = __shfl_down_sync(0xffu, t, 4);
    y[t] = v;
  }
}
