// Adds up four rows of 128 floats, which a bulk copy loads one after another into one buffer behind one mbarrier.
// The parity follows the phase.
// grid: 2  block: 128
// args: [{"type": "f32", "size": 1024, "fill": 1}, {"name": "y", "type": "f32", "size": 256, "expect": 4}]
// with parity_never_flips: barrier-order at hopper.cuh:18, deadlock at hopper.cuh:18, race at hopper.cuh:34
//   Each wait asks for parity 0. From the second row on that phase has already ended, so the wait returns at once and
//   the threads read a row that has not landed. Seen in tile-ai/tilelang pull request 3087. PTX ISA, mbarrier.try_wait
//   (".parity" of the current or the immediately preceding phase).
#include "hopper.cuh"

__global__ void sum_rows(const float* x, float* y) {
  __shared__ __align__(128) float row[128];
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) load(row, x + blockIdx.x * 512 + i * 128, sizeof row, &full);
    wait(&full, i & 1);
    // edit parity_never_flips: wait(&full, 0);
    sum += row[127 - threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = sum;
}
