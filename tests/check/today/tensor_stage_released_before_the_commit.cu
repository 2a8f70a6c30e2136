// A warp multiplies four pairs of tiles of bf16 that another one loads into one stage; four warps store the sums.
// The stage is free when a tcgen05.commit has arrived.
// grid: 1  block: 192  arch: sm_100a
// args: [{"type": "i32", "size": 4608, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 64}]
// with tensor_stage_released_before_the_commit: async-pending at hopper.cuh:34
//   The warp that multiplies frees the stage by an arrival of its own: the next copy overwrites tiles that the tensor
//   core still reads. PTX ISA, tcgen05.commit.
#include "blackwell.cuh"

__global__ void __launch_bounds__(192) sums(const int* x, float* y) {
  __shared__ __align__(128) int ab[1152];
  __shared__ unsigned long long full, empty, done;
  __shared__ unsigned address;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    init(&full, 1), init(&empty, 1), init(&done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 0) alloc(&address, 32);
  before_sync();
  __syncthreads();
  after_sync();
  const unsigned d = address;
  if (threadIdx.x == 128) {
    for (int i = 0; i < 4; ++i) {
      wait(&empty, i & 1 ^ 1);
      load(ab, x + 1152 * i, 4608, &full);
    }
  } else if (threadIdx.x == 160) {
    for (int i = 0; i < 4; ++i) {
      wait(&full, i & 1);
      product(d, tile(ab, 2048), tile(ab + 1024, 256), bf16_product(128, 16), i);
      commit(&empty);
      // edit tensor_stage_released_before_the_commit: arrive(&empty);
    }
    commit(&done);
  } else if (warp < 4) {
    wait(&done, 0);
    after_sync();
    float z[16];
    load(z, d + lanes_of_warp());
    loaded();
    for (int i = 0; i < 16; ++i) y[i * 128 + threadIdx.x] = z[i];
    before_sync();
  }
  __syncwarp();
  __syncthreads();
  if (warp == 0) dealloc(d, 32);
}
