// What the kernels of this folder for the tensor cores of sm_100 share: tensor memory, products of bf16, commits.
#pragma once

#include "hopper.cuh"

template <int kGroup = 1>
__device__ void alloc(unsigned* to, int columns) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at(to)), "r"(columns),
               "n"(kGroup)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kGroup));
}

template <int kGroup = 1>
__device__ void dealloc(unsigned address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns), "n"(kGroup));
}

inline __device__ void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
inline __device__ void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
inline __device__ void stored() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
inline __device__ void loaded() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

// A matrix without swizzling: 8 rows of 16 bytes lie together, the next 16 bytes along k `leading` bytes further.
inline __device__ unsigned long long tile(const void* p, unsigned leading) {
  return (at(p) & 0x3ffff) >> 4 | static_cast<unsigned long long>(leading) >> 4 << 16 | 128ull >> 4 << 32 | 1ull << 46;
}

// The instruction descriptor of M x N sums in fp32 of products of bf16.
constexpr unsigned bf16_product(unsigned m, unsigned n) {
  return 1u << 4 | 1u << 7 | 1u << 10 | n / 8 << 17 | m / 16 << 24;
}

template <int kGroup = 1>
__device__ void product(unsigned d, unsigned long long a, unsigned long long b, unsigned what, int keep) {
  asm volatile(
      "{ .reg .pred keep;\nsetp.ne.b32 keep, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, keep; }" ::"r"(d),
      "l"(a), "l"(b), "r"(what), "r"(keep), "n"(kGroup)
      : "memory");
}

inline __device__ void commit(void* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at(bar)) : "memory");
}

inline __device__ void commit_to_both(void* bar, unsigned short ctas) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
          at(bar)),
      "h"(ctas)
      : "memory");
}

// 16 columns of the lanes of the warp.
inline __device__ void load(float (&x)[16], unsigned address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "[%16];"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7]), "=f"(x[8]),
        "=f"(x[9]), "=f"(x[10]), "=f"(x[11]), "=f"(x[12]), "=f"(x[13]), "=f"(x[14]), "=f"(x[15])
      : "r"(address));
}

inline __device__ void store8(unsigned address, const unsigned (&x)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(address),
               "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7])
               : "memory");
}

inline __device__ unsigned lanes_of_warp() { return threadIdx.x / 32 % 4 << 21; }
