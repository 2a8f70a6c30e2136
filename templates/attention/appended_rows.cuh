// Keys of a cache, and after them new ones, which are in a tensor of their own until this launch has written them to
// the cache. Where a CTA reads a new key, it reads it there: another CTA may be writing it. Needs lib/gather.cuh.

template <class Old>
struct AppendedRows {
  Old old;
  const char* fresh;  // row 0: key first_new
  long long fresh_bytes;
  int first_new;
  template <class Launch, class Tile, class T, class New>
  static __device__ __forceinline__ AppendedRows of(const Launch& launch, const Tile& tile, const T& from,
                                                    const New& fresh) {
    return {Old::of(launch, tile, from, fresh), tile.keys_of(fresh), 2 * fresh.row_stride, tile.first_new};
  }
  __device__ __forceinline__ void advance(int) const {}
  __device__ __forceinline__ const char* new_row(int i) const { return fresh + i * fresh_bytes; }
};

/// With a cache of fp8 only old keys are copied: the tile's conversion fills in new ones.
template <bool kWhole, class Layout, int kRows, int kThreads, class Old>
__device__ __forceinline__ void copy_keys(const TileCopy<Layout, kRows, kThreads>& to, unsigned tile,
                                          const AppendedRows<Old>& keys, int first, int end) {
  if (first + kRows <= keys.first_new) return copy_keys<true>(to, tile, keys.old, first, end);
  gather<false>(
      to, tile,
      [&](int row) {
        const int key = first + row;
        return kFp8 || key < keys.first_new ? keys.old(key) : keys.new_row(key - keys.first_new);
      },
      FirstRows{(kFp8 ? keys.first_new : end) - first});
}
