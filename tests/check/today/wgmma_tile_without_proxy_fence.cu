// Multiplies 64 x 16 by 16 x 16 ones of bf16 that the threads themselves stored in shared memory (a converted or
// dequantised operand).
// Each thread fences its stores for the async proxy before the barrier.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "i32", "size": 640, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 1024, "expect": 16}]
// with wgmma_tile_without_proxy_fence: race at 27
//   wgmma reads shared memory through the async proxy, and no thread fenced its stores for it: the product may use old
//   bytes. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", step 2; sgl-project/sglang pull request 39124
//   and NVIDIA/Fuser issue 3561 quote the rule.
#include "hopper.cuh"

// Blocks of 8 rows of 16 bytes: those of the second half of k lie `leading` bytes further, the next 8 rows 128.
__global__ void product(const int* x, float* y) {
  __shared__ __align__(128) int a[512], b[128];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = x[i];
  b[threadIdx.x] = x[512 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  // edit wgmma_tile_without_proxy_fence:
  __syncthreads();
  float d[8];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{ .reg .pred sum;\nsetp.ne.b32 sum, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, sum, 1, 1, 0, 0; "
      "}"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
      : "l"(matrix(a, 1024)), "l"(matrix(b, 256)));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    y[i * 128 + threadIdx.x] = d[i];
  }
}
