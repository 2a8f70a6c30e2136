// Multiplies ones of bf16 into two sets of sums, so that the second product runs while the first sums are stored.
// Before the second sums are stored, a second wait leaves no batch in flight.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "i32", "size": 640, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with wgmma_wait_leaves_the_last_product: async-pending at 31
//   The wait that lets one batch run is never followed by one that lets none: the second sums are stored while the
//   tensor cores still write them. NVIDIA/cutlass issue 1852 (what N in warpgroup_wait means); PTX ISA,
//   wgmma.wait_group.
#include "hopper.cuh"

// Blocks of 8 rows of 16 bytes: those of the second half of k lie `leading` bytes further, the next 8 rows 128.
__global__ void products(const int* x, float* y) {
  __shared__ __align__(128) int a[512], b[128];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = x[i];
  b[threadIdx.x] = x[512 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float first[8] = {}, second[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(first, a, b, 0);
  multiply(second, a, b, 0);
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(first[i])::"memory");
    y[i * 128 + threadIdx.x] = first[i];
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  // edit wgmma_wait_leaves_the_last_product:
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(second[i])::"memory");
    y[1024 + i * 128 + threadIdx.x] = second[i];
  }
}
