// grid: 1  block: 32
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 32}]
// finds: async-pending at 8
__global__ void stage(const float* x, float* y) {
  __shared__ __align__(16) float part[128];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(part + 4 * threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * threadIdx.x));
  y[threadIdx.x] = part[4 * threadIdx.x];
}
