// Each block takes 128 counters out of device memory by a bulk copy, sets them to 0 and writes them in reverse order.
// The counters are set to 0 behind the wait for the copy.
// grid: 2  block: 128
// args: [{"name": "counters", "type": "i32", "size": 256, "fill": 3, "expect": 0}, {"name": "y", "type": "i32", "size": 256, "expect": 3}]
// with source_overwritten_while_copied: race at hopper.cuh:34, race at 19
//   The counters are set to 0 before the wait for the copy, which may read them at any time until then: zeros in y. PTX
//   ISA, cp.async.bulk (no order of its reads before the completion) and "Async proxy".
#include "hopper.cuh"

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
