// What the kernels of this folder share: mbarriers, bulk copies, clusters and wgmma.
#pragma once

inline __device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

inline __device__ void init(void* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory");
}

inline __device__ void arrive(void* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(bar)) : "memory");
}

inline __device__ void wait(const void* bar, int parity) {
  asm volatile(
      "{ .reg .pred done;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN_%=; "
      "}" ::"r"(at(bar)),
      "r"(parity)
      : "memory");
}

// Acquires what threads of the whole cluster released by their arrivals.
inline __device__ void wait_for_cluster(const void* bar, int parity) {
  asm volatile(
      "{ .reg .pred done;\nAGAIN_%=:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra AGAIN_%=; }" ::"r"(at(bar)),
      "r"(parity)
      : "memory");
}

inline __device__ void load(void* to, const void* from, int bytes, void* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(bar))
               : "memory");
}

inline __device__ void store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(at(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

inline __device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

inline __device__ unsigned of_rank(const void* p, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(at(p)), "r"(rank));
  return address;
}

// The descriptor of a matrix without swizzling whose core matrices of 8 rows are 128 bytes apart.
inline __device__ unsigned long long matrix(const void* p, unsigned leading) {
  return (at(p) & 0x3ffff) >> 4 | leading >> 4 << 16 | 128ull >> 4 << 32;
}

inline __device__ void multiply(float (&d)[8], const void* a, const void* b, int keep) {
  asm volatile(
      "{ .reg .pred sum;\nsetp.ne.b32 sum, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, sum, 1, 1, 0, 0; "
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "l"(matrix(a, 1024)), "l"(matrix(b, 256)), "r"(keep));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
