// One accumulator for four tiles: a warp multiplies, four warps store the sums of each tile.
// The next product waits until all have loaded the sums before.
// grid: 1  block: 160  arch: sm_100a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 8192, "expect": 16}]
// with tensor_sums_overwritten_before_they_are_read: async-pending at blackwell.cuh:62, barrier-order at hopper.cuh:11
//   The next product replaces sums that a warp may still load: accumulators need a barrier for either direction, as
//   stages of shared memory do.
#include "blackwell.cuh"

__global__ void __launch_bounds__(160) sums(const int* x, float* y) {
  __shared__ __align__(128) int ab[1152];
  __shared__ unsigned long long full[4], empty;
  __shared__ unsigned address;
  const int warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < 1152; i += 160) ab[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) init(full + i, 1);
    init(&empty, 128);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 4) alloc(&address, 32);
  before_sync();
  __syncthreads();
  after_sync();
  const unsigned d = address;
  if (threadIdx.x == 128) {
    for (int i = 0; i < 4; ++i) {
      wait(&empty, i & 1 ^ 1);
      // edit tensor_sums_overwritten_before_they_are_read:
      after_sync();
      product(d, tile(ab, 2048), tile(ab + 1024, 256), bf16_product(128, 16), 0);
      commit(full + i);
    }
  } else if (warp < 4) {
    for (int i = 0; i < 4; ++i) {
      wait(full + i, 0);
      after_sync();
      float z[16];
      load(z, d + lanes_of_warp());
      loaded();
      before_sync();
      arrive(&empty);
      for (int k = 0; k < 16; ++k) y[2048 * i + k * 128 + threadIdx.x] = z[k];
    }
  }
  __syncwarp();
  __syncthreads();
  if (warp == 4) dealloc(d, 32);
}
