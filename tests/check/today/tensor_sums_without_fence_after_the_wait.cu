// Multiplies 128 x 16 by 16 x 16 ones of bf16; each warp stores the sums of its 32 lanes.
// A fence orders the loads after the relaxed wait for the commit.
// grid: 1  block: 128  arch: sm_100a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with tensor_sums_without_fence_after_the_wait: unfenced at blackwell.cuh:62
//   tcgen05.ld is asynchronous itself: nothing orders it after a wait that does not acquire. PTX ISA, "Canonical
//   synchronization patterns", non-pipelined instructions.
#include "blackwell.cuh"

__global__ void __launch_bounds__(128) sums(const int* x, float* y) {
  __shared__ __align__(128) int ab[1152];
  __shared__ unsigned long long done;
  __shared__ unsigned address;
  for (int i = threadIdx.x; i < 1152; i += 128) ab[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) init(&done, 1);
  if (threadIdx.x < 32) alloc(&address, 32);
  before_sync();
  __syncthreads();
  after_sync();
  const unsigned d = address;
  if (threadIdx.x == 0) {
    product(d, tile(ab, 2048), tile(ab + 1024, 256), bf16_product(128, 16), 0);
    commit(&done);
  }
  __syncwarp();
  asm volatile(
      "{ .reg .pred done;\nAGAIN_%=:\nmbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra AGAIN_%=; }" ::"r"(at(&done))
      : "memory");
  after_sync();
  // edit tensor_sums_without_fence_after_the_wait:
  float z[16];
  load(z, d + lanes_of_warp());
  loaded();
  for (int i = 0; i < 16; ++i) y[i * 128 + threadIdx.x] = z[i];
  before_sync();
  __syncthreads();
  if (threadIdx.x < 32) dealloc(d, 32);
}
