// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "f32", "size": 128}]
// finds: race at 27
// The sums of one product are read by ordinary instructions, and the next product overwrites the same registers with no
// wgmma.fence between. The ISA asks for one "between a register access by a thread in the warpgroup and any
// wgmma.mma_async instruction that accesses the same registers" (PTX ISA, wgmma.fence); only products of one shape that
// follow each other need none. A read is an access, too.
#include <cuda_fp16.h>
__global__ void k(float* y) {
  __shared__ __align__(1024) __half a[64 * 16], b[8 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += 128) a[i] = 1.0f;
  b[threadIdx.x] = 1.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long base = 1ull << 16 | 8ull << 32;
  const unsigned long long da = base | ((unsigned)__cvta_generic_to_shared(a) & 0x3ffff) >> 4;
  const unsigned long long db = base | ((unsigned)__cvta_generic_to_shared(b) & 0x3ffff) >> 4;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0, sum = 0;

  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %5, %6, 0, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "add.f32 %4, %4, %0;\nadd.f32 %4, %4, %1;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %5, %6, 0, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(sum) : "l"(da), "l"(db) : "memory");
  y[threadIdx.x] = sum + d0 + d1;
}
