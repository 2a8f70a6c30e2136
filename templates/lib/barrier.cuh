// Barriers in shared memory (mbarrier, sm_90). A barrier counts the arrivals of a phase and the bytes that copies still
// have to deliver; the phase ends when both are complete, and the next begins. A ring of stages has two barriers for
// each stage: `full` (its data has landed) and `empty` (its readers are done). Phases alternate between parity 0 and 1;
// waiting for parity 1 of a new barrier returns at once, as for the phase before the first.

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to copies and to other CTAs; a barrier of all their users has to follow.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives at the same barrier of another CTA of the cluster. The arrival releases to its own CTA only: for the
/// cluster, ptxas 13.0 makes of it a fence for the whole GPU, and a main loop with one took 1.5 times as long on an
/// H100. Enough where the arrival ends reads that have completed, as of a stage that wgmma has read.
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, int rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Arrives, and adds bytes of copies that the phase waits for.
__device__ __forceinline__ void barrier_arrive_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Waits for the end of the phase of this parity. %= numbers the labels of each copy.
__device__ __forceinline__ void barrier_wait(unsigned barrier, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "wait_%=: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra wait_%=; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Place in a ring of kStages: the stage, and the parity of the phase that ends its next use.
template <int kStages>
struct RingPlace {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  __device__ __forceinline__ void advance(int stages) {
    stage += stages;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};

/// A barrier (0 to 15) of `threads` threads of the CTA, whole warps.
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
