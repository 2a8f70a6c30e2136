// grid: 1  block: 32
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 128}, {"type": "i32", "value": 20}]
// finds: bad-copy-size at 7
__global__ void stage(const float* x, float* y, int bytes) {
  __shared__ __align__(16) float part[128];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(part + 4 * threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(x + 4 * threadIdx.x), "r"(bytes));
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[threadIdx.x] = part[threadIdx.x];
}
