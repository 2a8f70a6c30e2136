// Each block takes 128 counters out of device memory by a bulk copy, sets them to 0 and writes them in reverse order.
// The counters are set to 0 behind the wait for the copy.
// grid: 2  block: 128
// args: [{"name": "counters", "type": "i32", "size": 256, "fill": 3, "expect": 0}, {"name": "y", "type": "i32", "size": 256, "expect": 3}]
// finds: nothing
// with source_overwritten_while_copied: race at 22, race at 35
//   The counters are set to 0 before the wait for the copy, which may read them at any time until then: zeros in y. PTX
//   ISA, cp.async.bulk (no order of its reads before the completion) and "Async proxy".
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void wait(const void* bar, int parity) {
  asm volatile(
      "{ .reg .pred done;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN_%=; "
      "}" ::"r"(at(bar)),
      "r"(parity)
      : "memory");
}

__device__ void load(void* to, const void* from, int bytes, void* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(bar))
               : "memory");
}

__global__ void take(int* counters, int* y) {
  __shared__ __align__(128) int taken[128];
  __shared__ unsigned long long full;
  const int first = blockIdx.x * 128, t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    load(taken, counters + first, sizeof taken, &full);
  }
  __syncthreads();
  // edit source_overwritten_while_copied: __syncthreads(); counters[first + t] = 0;
  wait(&full, 0);
  counters[first + t] = 0;
  // edit source_overwritten_while_copied:
  y[first + t] = taken[127 - t];
}
