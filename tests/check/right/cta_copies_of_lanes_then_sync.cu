// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 128, "fill": "iota"}, {"name": "y", "type": "i32", "size": 128}]
// with cta_copy_read_by_other_lanes: race at 13
__global__ void k(const int* x, int* y) {
  __shared__ __align__(16) int s[128];
  const int t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(s + 4 * t))), "l"(x + 4 * t));
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[4 * t] = s[4 * t];
  // edit cta_copy_read_by_other_lanes:
  __syncwarp();
  // edit cta_copy_read_by_other_lanes:
  for (int i = t; i < 128; i += 32) y[i] = s[i];
}
