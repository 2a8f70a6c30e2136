// grid: 1  block: 64  arch: sm_90a
// args: [{"type": "i32", "size": 32}]
// finds: race at 19
// Warp 0 writes shared memory and arrives at an mbarrier with .relaxed, after fence.proxy.async only. A proxy fence is
// no fence.acq_rel: the arrival is no release pattern (PTX ISA, "Release and Acquire Patterns"), and the read races.
__global__ void k(int* y) {
  __shared__ int data[32];
  __shared__ unsigned long long bar;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x < 32) {
    data[lane] = lane;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  } else {
    asm volatile("{ .reg .pred p;\nw: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra w; }" ::"r"(at) : "memory");
    y[lane] = data[31 - lane];
  }
}
