// Shared memory as an extension of a thread's registers. Needs lib/pack.cuh.

/// Packs of N elements, numbered from 0, which only the thread that wrote them reads: no barrier is needed.
/// Neighbouring threads use neighbouring words of up to 16 bytes, so accesses have no bank conflicts. A slot takes
/// kThreads * max(4, N * sizeof(T)) bytes.
template <class T, int N, int kThreads>
struct ThreadSlots {
  using Group = Pack<T, N>;
  static constexpr int kUnitWords = Group::kWords < 4 ? Group::kWords : 4;  // of one access
  unsigned* base;

  __device__ __forceinline__ explicit ThreadSlots(void* shared) : base(static_cast<unsigned*>(shared)) {}
  __device__ __forceinline__ unsigned* unit(int slot, int word) const {
    return base + (slot * Group::kWords + word) * kThreads + threadIdx.x * kUnitWords;
  }
  __device__ __forceinline__ void put(int slot, const Group& group) const {
#pragma unroll
    for (int i = 0; i < Group::kWords; i += kUnitWords) store_words<4 * kUnitWords>(unit(slot, i), group.w + i);
  }
  __device__ __forceinline__ Group take(int slot) const {
    Group group;
#pragma unroll
    for (int i = 0; i < Group::kWords; i += kUnitWords) load_words<4 * kUnitWords>(unit(slot, i), group.w + i);
    return group;
  }
};
