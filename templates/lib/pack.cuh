// N neighbouring elements of a tensor in their memory format: several loads can be in flight before the first value is
// converted, and partial groups can be loaded and stored. Needs lib/convert.cuh.

template <class T, int N>
struct Pack {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T)), kWords = (kBytes + 3) / 4;
  static constexpr int kPerWord = N < 4 / static_cast<int>(sizeof(T)) ? N : 4 / static_cast<int>(sizeof(T));
  static constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  unsigned w[kWords];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) w[i] = 0;
  }
  __device__ __forceinline__ void load(const T* from) { load_words<kBytes>(from, w); }
  /// To global memory. In assembly, because the compiler splits wide stores and does not always merge them again.
  __device__ __forceinline__ void store(T* to) const {
    const unsigned long long at = __cvta_generic_to_global(to);
    if constexpr (kBytes >= 16) {
#pragma unroll
      for (int i = 0; i < kWords; i += 4)
        asm volatile("st.global.v4.b32 [%0], { %1, %2, %3, %4};" ::"l"(at + 4 * i), "r"(w[i]), "r"(w[i + 1]),
                     "r"(w[i + 2]), "r"(w[i + 3]));
    } else if constexpr (kBytes == 8) {
      asm volatile("st.global.v2.b32 [%0], { %1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]));
    } else {
      store_words<kBytes>(to, w);
    }
  }
  /// Loads the elements j with 0 <= first + j < count one by one; the others become zero and are not read.
  __device__ __forceinline__ void load_some(const T* from, int first, int count) {
    clear();
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (static_cast<unsigned>(first + j) < static_cast<unsigned>(count)) {
        unsigned one;
        load_words<sizeof(T)>(from + j, &one);
        w[j / kPerWord] |= one << j % kPerWord * kBits;
      }
  }
  __device__ __forceinline__ void store_some(T* to, int first, int count) const {
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (static_cast<unsigned>(first + j) < static_cast<unsigned>(count)) {
        const unsigned one = w[j / kPerWord] >> j % kPerWord * kBits;
        store_words<sizeof(T)>(to + j, &one);
      }
  }
  __device__ __forceinline__ void to_floats(float (&x)[N]) const { unpack_as<T>(w, x); }
  __device__ __forceinline__ void from_floats(const float (&x)[N]) { pack_as<T>(x, w); }
};
