// Clusters (sm_90): CTAs that run at the same time on neighbouring SMs and may access each other's shared memory.

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// The two halves of cluster_sync(): work between them overlaps with the wait for the other CTAs.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
/// A barrier of all threads of the cluster that have not ended. It orders no accesses to memory: barrier_init_fence()
/// orders the initialisation of mbarriers, and an order of all accesses would be a fence for the whole GPU.
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
/// Ends this warp's use of a stage: arrives at its barrier `empty` in each CTA of the cluster. All load parts of it.
template <int kCluster>
__device__ __forceinline__ void release(unsigned empty, int lane) {
  if constexpr (kCluster > 1) {
    if (lane < kCluster) barrier_arrive_at(empty, lane);
  } else {
    if (lane == 0) barrier_arrive(empty);
  }
}
/// Stores 4 bytes at the same place of the shared memory of another CTA. The mbarrier at the same place there counts
/// them when they have arrived.
__device__ __forceinline__ void store_at_rank(unsigned place, float value, unsigned barrier, int rank) {
  asm volatile(
      "{ .reg .b32 to, counts; mapa.shared::cluster.u32 to, %0, %3; mapa.shared::cluster.u32 counts, %2, %3; "
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [to], %1, [counts]; }" ::"r"(place),
      "f"(value), "r"(barrier), "r"(rank)
      : "memory");
}
