// grid: 2  block: 32  arch: sm_90a
// args: [{"name": "x", "type": "f32", "size": 64, "fill": "random", "seed": 8}, {"name": "y", "type": "f32", "size": 64}, {"name": "z", "type": "f32", "size": 64}]
// Each CTA of a pair gets the other's 1.1 x, by a bulk copy and by loads.
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ unsigned in_cta(unsigned address, unsigned rank) {
  unsigned out;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
  return out;
}
__device__ void meet() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__global__ void __cluster_dims__(2) exchange(const float* x, float* y, float* z) {
  __shared__ __align__(16) float own[32], other[32];
  __shared__ unsigned long long arrived;
  const unsigned i = threadIdx.x, rank = blockIdx.x, there = rank ^ 1;
  own[i] = x[rank * 32 + i] * 1.1f;
  if (i == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&arrived)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  meet();
  if (i == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(&arrived)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"(in_cta(at(other), there)), "r"(at(own)), "r"(in_cta(at(&arrived), there)) : "memory");
  }
  float loaded;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(loaded) : "r"(in_cta(at(own + i), there)) : "memory");
  z[rank * 32 + i] = loaded;
  asm volatile("{ .reg .pred p;\nW_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra W_%=; }" ::"r"(at(&arrived)) : "memory");
  y[rank * 32 + i] = other[i];
  meet();
}
