// What a CTA of attention/warpgroup.cu.jinja has to do: a tile of rows of a launch (launch.cuh), and the keys that the
// tile visits. The kernel defines its constants. A walk gives the tiles of a CTA, one after another: OneTile, RowWalk
// (row_walk.cuh), EvenSplit (even_split.cuh).

/// A tile: the rows that the CTA owns of one sequence, and the keys that it visits for them.
struct Tile : Sequence {
  int head, kv_unit;        // head: the first of kGroup; kv_unit: the walk's head
  int split, parts;         // split: of the keys, or this CTA's part of an even split
  int slice;                // of the tensors
  int row0, end_row;        // queries of the tile
  int lead;                 // row r may see keys 0 .. r + lead
  int steps;                // tiles of keys that some row may see
  int first, last, stride;  // tiles of keys that the CTA visits
  float scale;              // as in Launch, in fp8 with the scales of Q and K
  int kv_scale;             // index of the scales
  Modifiers modifiers;

  template <class Walk>
  __device__ __forceinline__ Tile(const Launch& launch, const Walk& walk)
      : Sequence(launch, walk.batch, kSeveral ? launch.batches : gridDim.z / (kSplit ? launch.splits : 1),
                 kSeveral ? launch.heads : gridDim.y * (kSection * kGroup)),
        head(walk.head * kGroup),
        kv_unit(walk.head),
        split(walk.part),
        parts(walk.parts) {
    row0 = walk.row * kQueries;
    slice = kVarlen ? 0 : batch;
    kv_scale = kScalePerHead ? kv_head(launch) : 0;
    scale = launch.scale;
    if constexpr (kFp8) scale = launch.scale * launch.q_scale[kv_scale] * launch.k_scale[kv_scale];
    lead = kCausal || kModified ? kv_len - q_len : 0;
    end_row = min(row0 + kQueries, q_len);
    steps = ceil_div(kv_len, BN);
    if constexpr (kCausal) steps = min(steps, max(0, ceil_div(end_row + lead, BN)));
    first = walk.first;
    stride = kSplit ? launch.splits : 1;
    if constexpr (kEven)
      last = walk.last;
    else if constexpr (kSplit)
      last = split < steps ? steps - 1 - (steps - 1 - split) % stride : -1;
    else
      last = steps - 1;
    modifiers = Modifiers(launch, *this);
  }
  /// A sequence shorter than the longest has no such rows.
  __device__ __forceinline__ bool empty() const { return kVarlen && row0 >= q_len; }
  __device__ __forceinline__ TileRows rows() const { return TileRows(kGroup, end_row - row0); }
  __device__ __forceinline__ int kv_head(const Launch& launch) const {
    return kGroup > 1 ? kv_unit : head / launch.group;
  }
  /// The scale of the softmax, with the base of its exponentials.
  __device__ __forceinline__ float scale_log2() const { return kScored ? kLog2e : scale; }
};

/// What walks of several tiles know ahead.
struct NoTile {
  __device__ __forceinline__ explicit NoTile(const Launch&) {}
  __device__ __forceinline__ bool empty() const { return false; }
};

/// The walk of a CTA that has one tile, at OnePlace. The tile is known ahead: its loads are under way before the
/// barriers are there.
struct OneTile {
  struct Ahead : Tile {
    __device__ __forceinline__ explicit Ahead(const Launch& launch) : Tile(launch, OnePlace(launch)) {}
  };
  const Tile& ahead;
  bool left = true;
  __device__ __forceinline__ OneTile(const Launch&, const Tile& ahead, int) : ahead(ahead) {}
  __device__ __forceinline__ bool take() {
    const bool taken = left;
    left = false;
    return taken;
  }
  __device__ __forceinline__ const Tile& tile(const Launch&) const { return ahead; }
  static __device__ __forceinline__ long long pair() { return 0; }
};
