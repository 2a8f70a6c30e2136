// grid: 1  block: 32
// args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 128, "expect": "iota"}]
// with copy_not_waited_for: async-pending at 9
//   args: [{"type": "f32", "size": 128, "fill": "iota"}, {"type": "f32", "size": 32}]
__global__ void stage(const float* x, float* y) {
  __shared__ __align__(16) float part[128];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(part + 4 * threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * threadIdx.x));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  // edit copy_not_waited_for: y[threadIdx.x] = part[4 * threadIdx.x];
  __syncthreads();
  // edit copy_not_waited_for:
  for (int i = threadIdx.x; i < 128; i += 32) y[i] = part[i];
  // edit copy_not_waited_for:
}
