// The rows of a tile of attention/fused.cu.jinja: PlainRows or PackedRows. Needs lib/gather.cuh, lib/warp_rows.cuh and
// attention/packed_rows.cuh.jinja; the kernel defines BM, D, kEvenQ, kWarpRows and SmemTile.

/// Row i is query row0 + i of one head.
struct PlainRows {
  int row0, head0, q_len;
  __device__ __forceinline__ PlainRows(int place, int head, int, int q_len)
      : row0(place * BM), head0(head), q_len(q_len) {}
  __device__ __forceinline__ int end_row() const { return min(row0 + BM, q_len); }  // of the tile's queries
  __device__ __forceinline__ bool used(int i) const { return kEvenQ || row0 + i < q_len; }
  static __device__ __forceinline__ int heads() { return 1; }
  __device__ __forceinline__ int query(int i) const { return row0 + i; }
  __device__ __forceinline__ int head(int) const { return head0; }
  /// Elements between row i and row 0, in a tensor with these strides.
  static __device__ __forceinline__ long long offset(int i, long long row_stride, long long) { return i * row_stride; }

  template <class Copy, class T>
  __device__ __forceinline__ void copy(const Copy& to, unsigned tile, const char* from, const T&) const {
    to.template copy<kEvenQ>(tile, from, FirstRows{q_len - row0});
  }
  /// The rows of a warp from `stage` on, of which `first` is the first, to O.
  __device__ __forceinline__ void store(unsigned stage, int first, char* o, long long row_stride, long long,
                                        int lane) const {
    store_tile<SmemTile, kWarpRows, kEvenQ>(stage, o + 2 * first * row_stride, 2 * row_stride, q_len - row0 - first,
                                            D / 8, lane);
  }
};

/// Row i is head head0 + i % group of query row0 + i / group: all query heads that share one K/V head.
struct PackedRows {
  int row0, head0, end;
  TileRows rows;
  __device__ __forceinline__ PackedRows(int place, int head, int group, int q_len)
      : row0(place * (BM / group)), head0(head), end(min(row0 + BM / group, q_len)), rows(group, end - row0) {}
  __device__ __forceinline__ int end_row() const { return end; }
  __device__ __forceinline__ bool used(int i) const { return rows.used(i); }
  __device__ __forceinline__ int heads() const { return rows.group; }
  __device__ __forceinline__ int query(int i) const { return row0 + rows.row(i); }
  __device__ __forceinline__ int head(int i) const { return head0 + rows.head(i); }
  __device__ __forceinline__ long long offset(int i, long long row_stride, long long head_stride) const {
    return rows.row(i) * row_stride + rows.head(i) * head_stride;
  }

  template <class Copy, class T>
  __device__ __forceinline__ void copy(const Copy& to, unsigned tile, const char* from, const T& q) const {
    gather<false>(
        to, tile, [&](int i) { return from + 2 * offset(i, q.row_stride, q.head_stride); }, FirstRows{rows.end});
  }
  __device__ __forceinline__ void store(unsigned stage, int first, char* o, long long row_stride, long long head_stride,
                                        int lane) const {
    store_rows<SmemTile, kWarpRows>(stage, D / 8, lane, [&](int i) {
      return used(first + i) ? o + 2 * offset(first + i, row_stride, head_stride) : nullptr;
    });
  }
};
