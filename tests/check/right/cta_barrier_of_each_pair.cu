// grid: 1  block: 128
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 128}]
// Each pair of warps has a barrier of its own, and uses it again.
__global__ void swap_in_pairs(const float* x, float* y) {
  __shared__ float tile[128];
  const int pair = threadIdx.x / 64;
  for (int i = 0; i < 4; ++i) {
    tile[threadIdx.x] = x[threadIdx.x] + i;
    asm volatile("bar.sync %0, 64;" ::"r"(1 + pair) : "memory");
    y[threadIdx.x] = tile[threadIdx.x ^ 32];
    asm volatile("bar.sync %0, 64;" ::"r"(1 + pair) : "memory");
  }
}
