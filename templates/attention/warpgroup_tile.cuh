// What a CTA of attention/warpgroup.cu.jinja has to do: a launch, a tile of rows of it, and the keys that the tile
// visits. The kernel defines its constants. A walk gives the tiles of a CTA, one after another: OneTile, RowWalk
// (row_walk.cuh), EvenSplit (even_split.cuh).

/// The arguments of a launch, beside its tensors. One that the kernel does not have is 0.
struct Launch {
  int q_len, kv_len;  // of all sequences, or the longest
  int group;          // heads that share K and V
  float scale;        // kScored: of the scores; else with the base of the exponentials. fp8: of 1
  int heads = 0, batches = 0, splits = 1;
  const float *q_scale = nullptr, *k_scale = nullptr, *v_scale = nullptr;  // one, or one of each K/V head
  const int *kv_lengths = nullptr, *cu_seqlens = nullptr;                  // keys of a sequence; its first token
  const int* block_table = nullptr;
  int pages_per_sequence = 0;
  float *partial_o = nullptr, *partial_lse = nullptr, *lse = nullptr;
  unsigned* arrivals = nullptr;
  Half* o = nullptr;
  long long o_batch_stride = 0, o_row_stride = 0, o_head_stride = 0;
  Tables tables{};  // of the score expression and the mask: their tensors
};

/// A tile: the rows that the CTA owns of one sequence, and the keys that it visits for them.
struct Tile {
  int batch, head, kv_unit;  // head: the first of kGroup; kv_unit: the walk's head
  int heads, split, parts;   // split: of the keys, or this CTA's part of an even split
  int q_len, kv_len;         // of this sequence
  int first_token, tokens;   // kVarlen: the first token of this sequence, and those of all
  int slice;                 // of the tensors
  int row0, end_row;         // queries of the tile
  int lead;                  // row r may see keys 0 .. r + lead
  int steps;                 // tiles of keys that some row may see
  int first, last, stride;   // tiles of keys that the CTA visits
  float scale;               // as in Launch, in fp8 with the scales of Q and K
  int kv_scale;              // index of the scales
  Modifiers modifiers;

  template <class Walk>
  __device__ __forceinline__ Tile(const Launch& launch, const Walk& walk)
      : batch(walk.batch), head(walk.head * kGroup), kv_unit(walk.head), split(walk.part), parts(walk.parts) {
    heads = kSeveral ? launch.heads : gridDim.y * (kSection * kGroup);
    row0 = walk.row * kQueries;
    q_len = launch.q_len;
    kv_len = launch.kv_len;
    if constexpr (kRagged) kv_len = launch.kv_lengths[batch];
    first_token = tokens = 0;
    slice = batch;
    if constexpr (kVarlen) {
      // Sequences are packed without gaps; this one may be shorter than the longest.
      first_token = launch.cu_seqlens[batch];
      tokens = launch.cu_seqlens[kSeveral ? launch.batches : gridDim.z / (kSplit ? launch.splits : 1)];
      slice = 0;
      q_len = kv_len = launch.cu_seqlens[batch + 1] - first_token;
    }
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
  /// A row of a head in an array [head][token] or [sequence][head][query].
  __device__ __forceinline__ long long row_index(int of_head, int row) const {
    if constexpr (kVarlen) return static_cast<long long>(of_head) * tokens + first_token + row;
    return (static_cast<long long>(batch) * heads + of_head) * q_len + row;
  }
};

/// What walks of several tiles know ahead.
struct NoTile {
  __device__ __forceinline__ explicit NoTile(const Launch&) {}
  __device__ __forceinline__ bool empty() const { return false; }
};

/// Where the tile of a CTA that has one lies. Last rows first: with a causal mask they take longest. The same rows of a
/// section of heads run together.
struct OnePlace {
  static constexpr int first = 0, last = 0, parts = 1;
  int row = gridDim.x / kSection - 1 - blockIdx.x / kSection;
  int head = blockIdx.y * kSection + blockIdx.x % kSection;
  int batch, part;
  __device__ __forceinline__ explicit OnePlace(const Launch& launch)
      : batch(kSplit ? blockIdx.z / launch.splits : blockIdx.z), part(kSplit ? blockIdx.z % launch.splits : 0) {}
};

/// The walk of such a CTA. Its tile is known ahead: its loads are under way before the barriers are there.
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
