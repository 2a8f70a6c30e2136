// Products of tcgen05 alone: `count` of one shape, and an arrival after the last. KIND, PAIR, A_IN_TMEM, SCALED choose
// the instruction; the instruction descriptor is an argument.
typedef unsigned int u32;
typedef unsigned long long u64;

#if PAIR
#define GROUP "cta_group::2"
#else
#define GROUP "cta_group::1"
#endif
#if A_IN_TMEM
#define A_OPERAND "[%1]"
#else
#define A_OPERAND "%1"
#endif
#if SCALED
#define SCALES ", [%5], [%5]"
#else
#define SCALES ""
#endif

extern "C" __global__ void __launch_bounds__(32)
#if PAIR
    __cluster_dims__(2, 1, 1)
#endif
        products(u32 descriptor, int count) {
  __shared__ u32 columns[1];
  __shared__ u64 barrier[1];
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(barrier));
  asm volatile("tcgen05.alloc." GROUP
               ".sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(static_cast<u32>(__cvta_generic_to_shared(columns))));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
  __syncwarp();
  const u32 d = columns[0];
#if A_IN_TMEM
  const u32 a = d + 256;
#else
  const u64 a = 0;
#endif
  u32 leads = 0;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(leads));
  if (leads) {
#pragma unroll 8
    for (int i = 0; i < count; ++i)
      asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma." GROUP "." KIND " [%0], " A_OPERAND
                   ", %2, %3" SCALES ", p;}" ::"r"(d),
#if A_IN_TMEM
                   "r"(a),
#else
                   "l"(a),
#endif
                   "l"(u64{0}), "r"(descriptor), "r"(1), "r"(d + 384));
#if PAIR
    asm volatile("tcgen05.commit." GROUP
                 ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(at),
                 "h"(static_cast<unsigned short>(3)));
#else
    asm volatile("tcgen05.commit." GROUP ".mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at));
#endif
  }
  __syncwarp();
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at));
  asm volatile("tcgen05.dealloc." GROUP ".sync.aligned.b32 %0, 512;" ::"r"(d));
}
