// grid: 1  block: 64
// args: [{"type": "f32", "size": 256, "fill": "iota"}, {"name": "y", "type": "f32", "size": 256, "expect": "iota"}]
// with mbarrier_copies_not_awaited: race at 10, race at 14
__global__ void stage(const float* x, float* y) {
  __shared__ __align__(16) float part[256];
  __shared__ unsigned long long landed;
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&landed)), to = static_cast<unsigned>(__cvta_generic_to_shared(part + 4 * threadIdx.x));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(bar));
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
  asm volatile("{.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra AGAIN;}" ::"r"(bar) : "memory");
  // edit mbarrier_copies_not_awaited:
  for (int i = threadIdx.x; i < 256; i += 64) y[i] = part[i];
}
