// The main loop of a GEMM for one tile: a warp that copies tiles of A and B by TMA, a warp that multiplies them,
// `stages` of each. KIND, BOXES (copies of each operand for a stage, whose rows have 128 bytes at most) and PRODUCTS of
// a stage are macros; rows and stages are arguments.
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) CUtensorMap {
  u64 opaque[16];
};

__device__ u32 shared_at(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void wait(u32 barrier, u32 parity) {
  asm volatile("{.reg .pred p; W%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W%=;}" ::"r"(barrier),
               "r"(parity));
}
__device__ void copy(u32 to, const CUtensorMap* map, int x, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(0), "r"(barrier)
      : "memory");
}
__device__ bool elected() {
  u32 leads = 0;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(leads));
  return leads;
}

extern "C" __global__ void __launch_bounds__(64)
    loop(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, u32 descriptor, int stages,
         int stage_bytes, int b_at, int box_elements, int count) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ u32 columns[1];
  __shared__ u64 full[8], empty[8], done[1];
  const u32 warp = threadIdx.x / 32;
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(shared_at(columns)));
  } else if (threadIdx.x == 32) {
    for (int s = 0; s < stages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(&full[s])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(&empty[s])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(done)));
  }
  __syncthreads();
  const u32 d = columns[0];
  if (warp == 0 && elected()) {
    int stage = 0;
    u32 parity = 1;
    for (int i = 0; i < count; ++i) {
      wait(shared_at(&empty[stage]), parity);
      const u32 barrier = shared_at(&full[stage]), to = shared_at(tiles) + stage * stage_bytes;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(stage_bytes));
#pragma unroll
      for (int k = 0; k < BOXES; ++k) {
        copy(to, &a, (i * BOXES + k) * box_elements, barrier);
        copy(to + b_at, &b, (i * BOXES + k) * box_elements, barrier);
      }
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  }
  if (warp == 1 && elected()) {
    int stage = 0;
    u32 parity = 0;
    for (int i = 0; i < count; ++i) {
      wait(shared_at(&full[stage]), parity);
      const u64 from = (shared_at(tiles) + stage * stage_bytes) >> 4 | u64{1} << 46;
#pragma unroll
      for (int k = 0; k < PRODUCTS; ++k)
        asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1." KIND
                     " [%0], %1, %2, %3, p;}" ::"r"(d),
                     "l"(from + 2 * k), "l"(from + (b_at >> 4) + 2 * k), "r"(descriptor), "r"(i | k));
      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
          shared_at(&empty[stage])));
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_at(done)));
    wait(shared_at(done), 0);
  }
  __syncthreads();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(d));
}
