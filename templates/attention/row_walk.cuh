// The tiles of a persistent CTA, in rounds of a tile for each CTA.
// kCausal: row tiles come from the last one, the longest, to the first. A CTA with one of the longer tiles of a round
// has one of the shorter tiles of the next. Else the row tiles of a head follow each other: they share K and V in L2.

struct RowWalk {
  int row_tiles, heads, columns;     // heads: in tiles; columns: pairs of a sequence and a head
  int begin = 0, turn = blockIdx.x;  // of the next round, and this CTA's place in it
  int row, head, batch;              // the current tile
  static constexpr int first = 0, last = 0, part = 0, parts = 1;
  using Ahead = NoTile;

  __device__ __forceinline__ RowWalk(const Launch& launch, NoTile, int)
      : row_tiles(ceil_div(launch.q_len, kQueries)), heads(launch.heads / kGroup), columns(heads * launch.batches) {}
  __device__ __forceinline__ bool take() {
    const int tile = begin + turn;
    if (tile >= row_tiles * columns) return false;
    begin += gridDim.x;
    if constexpr (kCausal) turn = gridDim.x - 1 - turn;
    // Quotients are the same for all lanes of a warp, which the compiler cannot know.
    int behind, column;
    if constexpr (kCausal) {
      behind = __shfl_sync(kAllLanes, tile / columns, 0);
      column = tile - behind * columns;
    } else {
      column = __shfl_sync(kAllLanes, tile / row_tiles, 0);
      behind = tile - column * row_tiles;
    }
    row = row_tiles - 1 - behind;
    batch = __shfl_sync(kAllLanes, column / heads, 0);
    head = column - batch * heads;
    return true;
  }
  __device__ __forceinline__ Tile tile(const Launch& launch) const { return Tile(launch, *this); }
  static __device__ __forceinline__ long long pair() { return 0; }
};
