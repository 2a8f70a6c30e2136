// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "i32", "size": 640, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 1024, "expect": 16}]
// with cta_wgmma_sums_stored_too_early: async-pending at 42
// with cta_wgmma_tile_not_waited_for: async-pending at 37, async-pending at 11
// with cta_wgmma_without_a_fence: race at 37
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void wait(unsigned barrier, int parity) {
  asm volatile("{ .reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W_%=; }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ void load(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}
__device__ unsigned long long descriptor(unsigned address, int leading, int stride) {
  return (address & 0x3ffff) >> 4 | static_cast<unsigned long long>(leading >> 4) << 16 | static_cast<unsigned long long>(stride >> 4) << 32;
}
// Ones: A of 64 x 16 and B of 16 x 16 elements of bf16 in blocks of 8 rows of 16 bytes, the two halves of k apart.
__global__ void product(const int* x, float* y) {
  __shared__ __align__(128) unsigned char a[2048], b[512];
  __shared__ unsigned long long loaded;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&loaded)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&loaded)), "r"(2560) : "memory");
    load(at(a), x, 2048, at(&loaded));
    load(at(b), x + 512, 512, at(&loaded));
  }
  wait(at(&loaded), 0);
  // edit cta_wgmma_tile_not_waited_for:
  float d[8];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  // edit cta_wgmma_without_a_fence:
  asm volatile("{ .reg .pred keep; setp.ne.b32 keep, 0, 0;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, keep, 1, 1, 0, 0; }"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
               : "l"(descriptor(at(a), 1024, 128)), "l"(descriptor(at(b), 256, 128)));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  // edit cta_wgmma_sums_stored_too_early: 0 => 1
  for (int i = 0; i < 8; ++i) asm volatile("" : "+f"(d[i])::"memory");
  for (int i = 0; i < 8; ++i) y[i * 128 + threadIdx.x] = d[i];
}
