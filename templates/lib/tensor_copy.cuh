// Copies of boxes of a tensor between global and shared memory by the tensor memory accelerator (TMA, sm_90). One
// thread issues a copy; coordinates count elements, dimension 0 first. Elements outside the tensor are read as zeros
// and not written.

/// A descriptor of the driver (cuTensorMapEncodeTiled), passed by value as `const __grid_constant__`.
struct __align__(64) TensorMap {
  unsigned long long opaque[16];
};
__device__ __forceinline__ unsigned long long generic(const TensorMap& map) {
  return reinterpret_cast<unsigned long long>(&map);
}
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(generic(map)) : "memory");
}

/// Loads a box; its bytes arrive at `barrier`.
__device__ __forceinline__ void tensor_load(unsigned to, const TensorMap& map, unsigned barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, { %3, %4}], [%2];" ::"r"(to),
      "l"(generic(map)), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void tensor_load(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z,
                                            int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, { %3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(generic(map)), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
/// Loads a box into the same place of all CTAs of the cluster in `ctas`, a bit for each rank. The bytes arrive at the
/// same barrier of each.
__device__ __forceinline__ void tensor_load_multicast(unsigned to, const TensorMap& map, unsigned barrier, int ctas,
                                                      int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, { %4, %5}], [%2], %3;" ::"r"(to),
      "l"(generic(map)), "r"(barrier), "h"(static_cast<unsigned short>(ctas)), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void tensor_load_multicast(unsigned to, const TensorMap& map, unsigned barrier, int ctas,
                                                      int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, { %4, %5, %6, %7}], [%2], %3;" ::"r"(to),
      "l"(generic(map)), "r"(barrier), "h"(static_cast<unsigned short>(ctas)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

/// Makes this thread's writes to shared memory visible to TMA and wgmma; a barrier with the issuing thread has to
/// follow.
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Stores a box. The stores of a thread are closed by tensor_store_commit; tensor_store_wait<N> leaves at most the N
/// newest batches still reading shared memory.
__device__ __forceinline__ void tensor_store(const TensorMap& map, unsigned from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, { %2, %3}], [%1];" ::"l"(generic(map)),
               "r"(from), "r"(x), "r"(y)
               : "memory");
}
__device__ __forceinline__ void tensor_store(const TensorMap& map, unsigned from, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, { %2, %3, %4, %5}], [%1];" ::"l"(generic(map)),
      "r"(from), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ __forceinline__ void tensor_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void tensor_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
