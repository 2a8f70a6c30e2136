// Multiplies 128 x 16 by 16 x 16 ones of bf16, with 32 columns of scratch that are allocated later.
// grid: 1  block: 128  arch: sm_100a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with tensor_permit_given_up_too_early: bad-tensor-memory at 30
//   The CTA has given up its right to allocate. PTX ISA, tcgen05.relinquish_alloc_permit.
#include "blackwell.cuh"

__global__ void __launch_bounds__(128) sums(const int* x, float* y) {
  __shared__ __align__(128) int ab[1152];
  __shared__ unsigned long long done;
  __shared__ unsigned address, more;
  for (int i = threadIdx.x; i < 1152; i += 128) ab[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) init(&done, 1);
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(at(&address)) : "memory");
    asm volatile("");
    // edit tensor_permit_given_up_too_early: "" => "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
  }
  before_sync();
  __syncthreads();
  after_sync();
  const unsigned d = address;
  if (threadIdx.x == 0) {
    product(d, tile(ab, 2048), tile(ab + 1024, 256), bf16_product(128, 16), 0);
    commit(&done);
  }
  __syncwarp();
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(at(&more)) : "memory");
  wait(&done, 0);
  after_sync();
  float z[16];
  load(z, d + lanes_of_warp());
  loaded();
  for (int i = 0; i < 16; ++i) y[i * 128 + threadIdx.x] = z[i];
  before_sync();
  __syncthreads();
  if (threadIdx.x < 32) dealloc(d, 32), dealloc(more, 32);
}
