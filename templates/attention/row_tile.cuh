// What a CTA of an attention kernel by mma has to do: rows of one sequence, and the tiles of keys that they see. The
// kernel defines its constants and Rows (tile_rows.cuh).

/// A thread, and the rows and columns of its warp in a tile. The lane is taken from an unsigned number, so that the
/// compiler knows that it is not negative.
struct Place {
  int thread, lane, warp;
  int part, warp_row, warp_col;  // part: of the columns of its rows
  int first_row;                 // of this lane
  __device__ __forceinline__ explicit Place(int thread)
      : thread(thread),
        lane(static_cast<unsigned>(thread) % 32),
        warp(thread / 32),
        part(warp % kWarpsN),
        warp_row(warp / kWarpsN * kWarpRows),
        warp_col(part * WN),
        first_row(warp_row + lane / 4) {}
  /// Row h of this lane in m-tile i, in the CTA's tile.
  __device__ __forceinline__ int row(int i, int h) const { return first_row + 16 * i + 8 * h; }
  /// The key of this lane's first score of tile j.
  __device__ __forceinline__ int key(int j) const { return j * BN + warp_col + lane % 4 * 2; }
};

/// The byte offset of the stage after `stage`.
__device__ __forceinline__ unsigned next_stage(unsigned stage) {
  return stage == (kStages - 1) * kStageBytes ? 0 : stage + kStageBytes;
}

/// A tensor [batch, row, head, d], or one of pages [page, row, head, d]. Strides are in elements.
template <class T>
struct Tensor {
  T* first;
  long long batch_stride, row_stride, head_stride, page_stride = 0;
};

/// The rows of a CTA, and the keys that they see.
struct Tile : Sequence {
  int split;          // of the keys
  int kv_head, head;  // head: of row 0
  Rows rows;
  int lead;             // row r may see keys 0 .. r + lead
  int first_new;        // the position of query 0; kAppend: the first key that is not in the cache
  int steps, unmasked;  // tiles of keys that some row may see; of these, the first ones need no comparison
  int first, stride;    // of the tiles that the CTA visits
  float scale;          // as in Launch, times k_scale
  float k_scale = 1.0f, v_scale = 1.0f;  // kScalesK, kScalesV: of the elements
  Modifiers modifiers;

  template <class Where>
  __device__ __forceinline__ Tile(const Launch& launch, const Where& place)
      : Sequence(launch, place.batch, kSplit ? gridDim.z / launch.splits : gridDim.z,
                 kPacked ? gridDim.y * launch.group : gridDim.y),
        split(place.part),
        kv_head(kPacked ? place.head : place.head / launch.group),
        head(kPacked ? place.head * launch.group : place.head),
        rows(place.row, head, launch.group, q_len),
        lead(kCausal || kModified ? kv_len - q_len : 0),
        first_new(kv_len - q_len),
        steps(ceil_div(kv_len, BN)),
        unmasked(kEvenKv ? steps : kv_len / BN),
        first(kSplit ? split : place.first),
        stride(kSplit ? launch.splits : 1),
        scale(launch.scale) {
    if constexpr (kCausal) {
      steps = min(steps, max(0, ceil_div(rows.end_row() + lead, BN)));
      unmasked = min(unmasked, max(0, rows.row0 + lead + 1) / BN);
    }
    const int of_scale = kScalePerHead ? kv_head : 0;
    if constexpr (kScalesK) {
      k_scale = launch.k_scale[of_scale];
      scale *= k_scale;
    }
    if constexpr (kScalesV) v_scale = launch.v_scale[of_scale];
    modifiers = Modifiers(launch, *this);
  }
  /// Sequences are packed without gaps; one shorter than the longest has no such rows.
  __device__ __forceinline__ bool empty() const { return kVarlen && rows.row0 >= q_len; }
  /// The scale of the softmax, with the base of its exponentials.
  __device__ __forceinline__ float scale_log2() const { return kScored ? kLog2e : scale; }
  /// Row 0 of this sequence in K, V or new keys.
  template <class T>
  __device__ __forceinline__ const char* keys_of(const Tensor<T>& t) const {
    return reinterpret_cast<const char*>(t.first + first_token * t.row_stride + batch * t.batch_stride +
                                         kv_head * t.head_stride);
  }
  /// Row 0 of this tile in Q or O.
  template <class T>
  __device__ __forceinline__ T* rows_of(const Tensor<T>& t) const {
    return t.first + first_token * t.row_stride + batch * t.batch_stride + head * t.head_stride +
           rows.row0 * t.row_stride;
  }
};
