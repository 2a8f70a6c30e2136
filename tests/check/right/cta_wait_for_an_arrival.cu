// grid: 1  block: 64  arch: sm_90a
// args: [{"name": "y", "type": "i32", "size": 32}]
// with cta_proxy_fence_is_no_release: race at 24
//   Warp 1 arrives with .relaxed, after fence.proxy.async only. A proxy fence is no fence.acq_rel: the arrival is no
//   release pattern (PTX ISA, "Release and Acquire Patterns").
// with cta_wait_that_ends_late_in_another_order: race at 24
//   Warp 0 tries once, and does not repeat: try_wait may return false at its time limit (PTX ISA, mbarrier.try_wait), and
//   warp 0 then reads data that warp 1 has not written.
__global__ void k(int* y) {
  __shared__ unsigned long long bar;
  __shared__ int data[32];
  const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) {
    data[lane] = lane;
    // edit cta_proxy_fence_is_no_release: data[lane] = lane; asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
    // edit cta_proxy_fence_is_no_release: release => relaxed
  } else {
    asm volatile("{ .reg .pred p;\nw: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra w; }" ::"r"(at) : "memory");
    // edit cta_wait_that_ends_late_in_another_order: @!p bra w; }" => }"
    y[lane] = data[31 - lane];
  }
}
