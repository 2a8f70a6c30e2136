// grid: 1  block: 160  arch: sm_90a
// args: [{"name": "a", "type": "f16", "size": 2048, "fill": "iota", "map": {"dims": [32, 64], "box": [32, 64], "swizzle": 64}}, {"name": "y", "type": "f32", "size": 2048, "expect": "iota"}]
// with NO_FENCE: race at 77
// with NO_INIT_BARRIER: race at 52, race at 54
// with NO_BARRIER: race at 77
// with NO_WAIT: async-pending at 77, async-pending at 54
// with OTHER_PARITY: deadlock
// with SHORT_COUNT: deadlock
// with LONG_COUNT: deadlock
// with OTHER_SWIZZLE: bad-descriptor
#include <cuda.h>
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void wait(unsigned barrier, int parity) {
  asm volatile("{ .reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W_%=; }" ::"r"(barrier), "r"(parity) : "memory");
}
#ifdef SHORT_COUNT
constexpr int kCount = 2048;
#elif defined(LONG_COUNT)
constexpr int kCount = 8192;
#else
constexpr int kCount = 4096;
#endif
#ifdef OTHER_PARITY
constexpr int kParity = 1;
#else
constexpr int kParity = 0;
#endif
#ifdef OTHER_SWIZZLE
constexpr unsigned long long kSwizzle = 3;  // of 32 bytes
#else
constexpr unsigned long long kSwizzle = 2;  // of 64 bytes
#endif
// K-major tiles with rows of 64 bytes and the swizzle of 64 bytes: groups of 8 rows are 512 bytes apart.
__device__ unsigned long long descriptor(unsigned address) {
  return (address & 0x3ffff) >> 4 | 1ull << 16 | (512ull >> 4) << 32 | kSwizzle << 62;
}
// y = A I: one warp loads A by TMA, a warpgroup writes the identity and multiplies.
__global__ void product(const __grid_constant__ CUtensorMap a_map, float* y) {
  __shared__ __align__(512) unsigned char a[4096];
  __shared__ __align__(512) unsigned short b[32 * 32];
  __shared__ unsigned long long loaded;
  const int thread = threadIdx.x;
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&loaded)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
#ifndef NO_INIT_BARRIER
  __syncthreads();
#endif
  if (thread >= 128) {
    if (thread == 128) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&loaded)), "r"(kCount) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                   ::"r"(at(a)), "l"(&a_map), "r"(0), "r"(0), "r"(at(&loaded)) : "memory");
    }
    return;
  }
  for (int i = thread; i < 32 * 32; i += 128) {
    const int n = i / 32, k = i % 32, piece = k / 8 ^ n / 2 % 4;
    b[n * 32 + piece * 8 + k % 8] = n == k ? 0x3c00 : 0;
  }
#ifndef NO_FENCE
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
#ifndef NO_BARRIER
  asm volatile("bar.sync 1, 128;" ::: "memory");
#endif
#ifndef NO_WAIT
  wait(at(&loaded), kParity);
#endif
  float d[16];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < 2; ++k)
    asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %18, 0;\nwgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, keep, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                 : "l"(descriptor(at(a) + 32 * k)), "l"(descriptor(at(b) + 32 * k)), "r"(k));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 16; ++i) asm volatile("" : "+f"(d[i])::"memory");
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  for (int i = 0; i < 16; ++i) y[(row + i / 2 % 2 * 8) * 32 + column + i / 4 * 8 + i % 2] = d[i];
}
