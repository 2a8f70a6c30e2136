// grid: 1  block: 128
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 128}]
// finds: barrier-order at 8
// Each pair of warps meets at barrier 1. Two warps of different pairs may complete it.
__global__ void swap_in_pairs(const float* x, float* y) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync 1, 64;" ::: "memory");
  y[threadIdx.x] = tile[threadIdx.x ^ 32];
}
