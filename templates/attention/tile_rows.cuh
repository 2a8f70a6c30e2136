// The rows of a tile of an attention kernel: PlainRows or PackedRows. Needs lib/gather.cuh, lib/warp_rows.cuh and
// attention/packed_rows.cuh.jinja; the kernel defines BM and kEvenQ.

/// Row i is query row0 + i of one head.
struct PlainRows {
  int row0, head0, q_len;
  __device__ __forceinline__ PlainRows(int place, int head, int, int q_len)
      : row0(place * BM), head0(head), q_len(q_len) {}
  __device__ __forceinline__ int end_row() const { return min(row0 + BM, q_len); }  // of the tile's queries
  __device__ __forceinline__ bool used(int i) const { return kEvenQ || row0 + i < q_len; }
  static __device__ __forceinline__ int queries(int) { return BM; }
  static __device__ __forceinline__ int heads() { return 1; }
  __device__ __forceinline__ int query(int i) const { return row0 + i; }
  __device__ __forceinline__ int head(int) const { return head0; }
  /// Elements between row i and row 0, in a tensor with these strides.
  static __device__ __forceinline__ long long offset(int i, long long row_stride, long long) { return i * row_stride; }

  template <class Copy, class T>
  __device__ __forceinline__ void copy(const Copy& to, unsigned tile, const char* from, const T&) const {
    to.template copy<kEvenQ>(tile, from, FirstRows{q_len - row0});
  }
  /// Rows of S or P, `pitch` elements each and `head_rows` of a head; pieces that `valid` excludes become zeros.
  /// `whole`: it excludes none of the rows in use.
  template <class Copy, class Valid>
  __device__ __forceinline__ void copy(const Copy& to, unsigned tile, const char* from, int, int, const Valid& valid,
                                       bool whole) const {
    if (kEvenQ && whole)
      to.template copy<true>(tile, from, valid);
    else
      to.template copy<false>(tile, from, valid);
  }
  /// kRows rows of a tile at `stage` to O, of which `first` is the first. `o`: row 0 of this tile.
  template <class Layout, int kRows>
  __device__ __forceinline__ void store(unsigned stage, int first, char* o, long long row_stride, long long,
                                        int lane) const {
    store_tile<Layout, kRows, kEvenQ>(stage, o + 2 * first * row_stride, 2 * row_stride, q_len - row0 - first,
                                      Layout::kChunks, lane);
  }
  /// `chunks` pieces of kRows rows to S, whose rows have `pitch` elements, `head_rows` of a head. kWhole: all pieces.
  /// `s`: the place that first_place() gives for row 0 of this tile and `first`.
  static __device__ __forceinline__ Half* first_place(Half* row, int first, int pitch) {
    return row + static_cast<long long>(first) * pitch;
  }
  template <class Layout, int kRows, bool kWhole>
  __device__ __forceinline__ void store_scores(unsigned stage, int first, char* s, int pitch, int, int chunks,
                                               int lane) const {
    store_tile<Layout, kRows, kEvenQ && kWhole>(stage, s, 2LL * pitch, q_len - row0 - first, chunks, lane);
  }
};

/// Row i is head head0 + i % group of query row0 + i / group: all query heads that share one K/V head.
struct PackedRows {
  int row0, head0, end;
  TileRows rows;
  __device__ __forceinline__ PackedRows(int place, int head, int group, int q_len)
      : row0(place * queries(group)), head0(head), end(min(row0 + queries(group), q_len)), rows(group, end - row0) {}
  __device__ __forceinline__ int end_row() const { return end; }
  __device__ __forceinline__ bool used(int i) const { return rows.used(i); }
  static __device__ __forceinline__ int queries(int group) { return BM / group; }
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
  template <class Copy, class Valid>
  __device__ __forceinline__ void copy(const Copy& to, unsigned tile, const char* from, int pitch, int head_rows,
                                       const Valid& valid, bool) const {
    gather<false>(
        to, tile, [&](int i) { return from + 2LL * (rows.head(i) * head_rows + rows.row(i)) * pitch; }, valid);
  }
  template <class Layout, int kRows>
  __device__ __forceinline__ void store(unsigned stage, int first, char* o, long long row_stride, long long head_stride,
                                        int lane) const {
    store_rows<Layout, kRows>(stage, Layout::kChunks, lane, [&](int i) {
      return used(first + i) ? o + 2 * offset(first + i, row_stride, head_stride) : nullptr;
    });
  }
  static __device__ __forceinline__ Half* first_place(Half* row, int, int) { return row; }
  template <class Layout, int kRows, bool kWhole>
  __device__ __forceinline__ void store_scores(unsigned stage, int first, char* s, int pitch, int head_rows, int chunks,
                                               int lane) const {
    store_rows<Layout, kRows>(stage, chunks, lane, [&](int i) {
      i += first;
      return used(i) ? s + 2LL * (rows.head(i) * head_rows + rows.row(i)) * pitch : nullptr;
    });
  }
};
