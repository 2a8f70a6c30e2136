// One warp per block sums four rows of 128 floats that it loads one after another into the same buffer.
// Each lane fences its loads against the async proxy before the warp lets the next copy begin.
// grid: 2  block: 32
// args: [{"type": "f32", "size": 1024, "fill": 1}, {"name": "y", "type": "f32", "size": 256, "expect": 4}]
// with bulk_load_over_values_just_read: nothing
//   The next copy may overwrite the buffer before the loads of the row have been made: __syncwarp orders the generic
//   proxy only. deepseek-ai/DeepEP issue 621 and pull request 642, NVIDIA/TransformerEngine pull request 2695 (wrong
//   results on GPUs); PTX ISA, "Proxies" and "Causality order". A limit of the checks (docs/use/check-limits.md): most
//   pipelines have no such fence.
#include "hopper.cuh"

__global__ void sum_rows(const float* x, float* y) {
  __shared__ __align__(128) float row[128];
  __shared__ unsigned long long full;
  const int lane = threadIdx.x;
  x += blockIdx.x * 512;
  if (lane == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  float sum[4] = {};
  for (int i = 0; i < 4; ++i) {
    if (lane == 0) load(row, x + 128 * i, sizeof row, &full);
    wait(&full, i & 1);
    for (int k = 0; k < 4; ++k) sum[k] += row[32 * k + lane];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    // edit bulk_load_over_values_just_read:
    __syncwarp();
  }
  for (int k = 0; k < 4; ++k) y[blockIdx.x * 128 + 32 * k + lane] = sum[k];
}
