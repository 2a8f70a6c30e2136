// Multiplies 128 x 16 by 16 x 16 ones of bf16; each warp stores the sums of its 32 lanes.
// grid: 1  block: 128  arch: sm_100a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with tensor_load_of_another_warps_lanes: bad-tensor-memory at blackwell.cuh:62
//   All warps load from lane 32 on, which only the second one of four reaches. PTX ISA, "Access restrictions".
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
  wait(&done, 0);
  after_sync();
  float z[16];
  load(z, d + lanes_of_warp());
  // edit tensor_load_of_another_warps_lanes: load(z, d + (32u << 16));
  loaded();
  for (int i = 0; i < 16; ++i) y[i * 128 + threadIdx.x] = z[i];
  before_sync();
  __syncthreads();
  if (threadIdx.x < 32) dealloc(d, 32);
}
