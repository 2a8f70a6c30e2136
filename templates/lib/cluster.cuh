// Clusters (sm_90): CTAs that run at the same time on neighbouring SMs and may access each other's shared memory.

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// A barrier of all threads of the cluster that have not ended. It orders no accesses to memory: barrier_init_fence()
/// orders the initialisation of mbarriers, and an order of all accesses would be a fence for the whole GPU.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
