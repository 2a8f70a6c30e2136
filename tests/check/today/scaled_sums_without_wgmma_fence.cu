// Multiplies ones of bf16 twice on the same sums, halved in between as the online softmax of attention scales them.
// A wgmma.fence orders the change of the registers before the next product.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "i32", "size": 640, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 1024, "expect": 24}]
// with scaled_sums_without_wgmma_fence: race at hopper.cuh:67
//   The registers are changed by ordinary instructions, and no wgmma.fence lies between that and the next product: it
//   may add to the sums of before. PTX ISA, wgmma.fence; NVIDIA/Fuser pull request 3680 quotes the two cases.
#include "hopper.cuh"

// Blocks of 8 rows of 16 bytes: those of the second half of k lie `leading` bytes further, the next 8 rows 128.
__global__ void products(const int* x, float* y) {
  __shared__ __align__(128) int a[512], b[128];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = x[i];
  b[threadIdx.x] = x[512 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, a, b, 0);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    d[i] *= 0.5f;
  }
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  // edit scaled_sums_without_wgmma_fence:
  multiply(d, a, b, 1);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    y[i * 128 + threadIdx.x] = d[i];
  }
}
