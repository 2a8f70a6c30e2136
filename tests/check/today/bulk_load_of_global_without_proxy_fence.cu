// Each block writes partial results to a workspace in global memory, loads them with a bulk copy and reverses them.
// Each thread fences its stores to global memory for the async proxy before the barrier.
// grid: 2  block: 128
// args: [{"type": "f32", "size": 256}, {"name": "y", "type": "f32", "size": 256, "expect": "iota"}]
// with bulk_load_of_global_without_proxy_fence: race at hopper.cuh:34
//   Plain stores are made by the generic proxy, the copy reads through the async proxy, and a barrier of the block is
//   no proxy fence: the copy may load stale bytes of the workspace. deepseek-ai/DeepEP pull request 642 (issue 621) has
//   the case of polled data; PTX ISA, "Proxies", "Causality order" and membar/fence.proxy.async.global.
#include "hopper.cuh"

__global__ void reverse(float* workspace, float* y) {
  __shared__ __align__(128) float tile[128];
  __shared__ unsigned long long full;
  const int first = blockIdx.x * 128, t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  workspace[first + t] = first + 127 - t;
  asm volatile("fence.proxy.async.global;" ::: "memory");
  // edit bulk_load_of_global_without_proxy_fence:
  __syncthreads();
  if (t == 0) load(tile, workspace + first, sizeof tile, &full);
  wait(&full, 0);
  y[first + t] = tile[127 - t];
}
