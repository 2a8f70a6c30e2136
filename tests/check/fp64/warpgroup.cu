// grid: 1  block: 128  arch: sm_90a
// args: [{"name": "x", "type": "f32", "size": 1024, "fill": "random", "seed": 4}, {"name": "y", "type": "f32", "size": 512}]
// A, rounded to f16, times the identity by wgmma; the result leaves by a bulk copy.
#include <cuda_fp16.h>
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
// Without a swizzle: blocks of 8 rows with 16 bytes each, 128 bytes apart along k, 256 along m or n.
__device__ unsigned long long descriptor(unsigned address) {
  return (address & 0x3ffff) >> 4 | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}
__global__ void product(const float* x, float* y) {
  __shared__ __align__(128) __half a[64 * 16];
  __shared__ __align__(128) __half b[8 * 16];
  __shared__ __align__(128) float out[64 * 8];
  const int thread = threadIdx.x;
  for (int i = thread; i < 64 * 16; i += 128) {
    const int m = i / 16, k = i % 16;
    a[m / 8 * 128 + k / 8 * 64 + m % 8 * 8 + k % 8] = __float2half(x[i] * 1.1f);
  }
  const int n = thread / 16, k = thread % 16;
  b[k / 8 * 64 + n * 8 + k % 8] = __float2half(n == k ? 1.0f : 0.0f);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(at(a))), "l"(descriptor(at(b))));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(d[i])::"memory");
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  for (int i = 0; i < 4; ++i) out[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 2048;" ::"l"(y), "r"(at(out)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
