// K or V of one sequence and head in a pool of pages. Needs lib/gather.cuh.

/// Key k is row k % kPage of page table[k / kPage]. Only keys of the sequence have a page: no other may be asked for.
template <int kPage>
struct PagedRows {
  const char* pool;  // row 0 of page 0
  const int* table;
  long long page_bytes, row_bytes;
  template <class Launch, class Tile, class T, class New>
  static __device__ __forceinline__ PagedRows of(const Launch& launch, const Tile& tile, const T& from, const New&) {
    constexpr long long kBytes = sizeof(*from.first);
    return {reinterpret_cast<const char*>(from.first + tile.kv_head * from.head_stride),
            launch.block_table + static_cast<long long>(tile.batch) * launch.pages_per_sequence,
            kBytes * from.page_stride, kBytes * from.row_stride};
  }
  __device__ __forceinline__ void advance(int) const {}
  __device__ __forceinline__ const char* operator()(int key) const {
    const unsigned k = key;
    return pool + __ldg(table + k / kPage) * page_bytes + k % kPage * row_bytes;
  }
};

/// Copies the tile of the keys from `first` on, a multiple of its rows. Keys from `end` on become zeros.
template <bool kWhole, class Layout, int kRows, int kThreads, int kPage>
__device__ __forceinline__ void copy_keys(const TileCopy<Layout, kRows, kThreads>& to, unsigned tile,
                                          const PagedRows<kPage>& keys, int first, int end) {
  if constexpr (kPage % kRows == 0)  // the tile is in one page
    to.template copy<kWhole>(tile, keys(first), FirstRows{end - first});
  else
    gather<kWhole>(
        to, tile, [&](int row) { return keys(first + row); }, FirstRows{end - first});
}
