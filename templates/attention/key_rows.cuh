// K or V of one sequence and head, row by row: StreamedRows, ContiguousRows, PagedRows (pages.cuh), or AppendedRows of
// the last two. All have of(launch, tile, tensor, ...), which finds them; copy_keys(), which copies a tile; and
// advance(), after each tile. All but StreamedRows have rows(key), the place of a row.

struct ContiguousRows {
  const char* first;
  long long row_bytes;
  template <class Launch, class Tile, class T, class New>
  static __device__ __forceinline__ ContiguousRows of(const Launch&, const Tile& tile, const T& from, const New&) {
    return {tile.keys_of(from), static_cast<long long>(sizeof(*from.first)) * from.row_stride};
  }
  __device__ __forceinline__ const char* operator()(int key) const { return first + key * row_bytes; }
  __device__ __forceinline__ void advance(int) const {}
};

/// Contiguous rows that are visited in equal steps: the place of the next tile is carried along.
struct StreamedRows {
  const char* next;
  long long row_bytes;
  template <class Launch, class Tile, class T, class New>
  static __device__ __forceinline__ StreamedRows of(const Launch& launch, const Tile& tile, const T& from,
                                                    const New& fresh) {
    const auto rows = ContiguousRows::of(launch, tile, from, fresh);
    return {rows(tile.first * BN), rows.row_bytes};
  }
  __device__ __forceinline__ void advance(int keys) { next += keys * row_bytes; }
};

/// Copies the keys from `first` on to a tile. Those from `end` on become zeros; kWhole says that there are none.
template <bool kWhole, class Layout, int kRows, int kThreads>
__device__ __forceinline__ void copy_keys(const TileCopy<Layout, kRows, kThreads>& to, unsigned tile,
                                          const ContiguousRows& keys, int first, int end) {
  to.template copy<kWhole>(tile, keys(first), FirstRows{end - first});
}
template <bool kWhole, class Layout, int kRows, int kThreads>
__device__ __forceinline__ void copy_keys(const TileCopy<Layout, kRows, kThreads>& to, unsigned tile,
                                          const StreamedRows& keys, int first, int end) {
  to.template copy<kWhole>(tile, keys.next, FirstRows{end - first});
}
