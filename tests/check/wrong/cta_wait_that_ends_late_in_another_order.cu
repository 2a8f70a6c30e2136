// grid: 1  block: 64  arch: sm_90a
// args: [{"type": "i32", "size": 32}]
// finds: race at 18
// Warp 1 tries once for the phase that warp 0's arrival ends, and does not repeat: try_wait may return false at its time
// limit (PTX ISA, mbarrier.try_wait), and warp 1 then reads data that warp 0 has not written.
__global__ void k(int* y) {
  __shared__ unsigned long long bar;
  __shared__ int data[32];
  const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) {
    data[lane] = lane;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  } else {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; }" ::"r"(at) : "memory");
    y[lane] = data[31 - lane];
  }
}
