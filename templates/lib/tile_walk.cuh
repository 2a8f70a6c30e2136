// The tiles of a CTA, one after another. Concurrent CTAs should share rows of A and columns of B in L2. Tiles are
// therefore numbered by groups of kGroup row tiles, each group column by column; the CTAs of a cluster are neighbours,
// its rows first. Needs lib/math.cuh.

struct TilePlace {
  int row, col;  ///< in tiles
};

/// Tile `index` of a matrix of rows x cols tiles, whole clusters. The last group may have fewer than kGroup row tiles.
template <int kGroup, int kClusterM, int kClusterN>
__device__ __forceinline__ TilePlace tile_place(int index, int rows, int cols) {
  const int above = index / (kGroup * cols) * kGroup, height = min(kGroup, rows - above);
  const int in_group = index - above * cols, cluster = in_group / (kClusterM * kClusterN);
  const int down = height / kClusterM, across = cluster / down;
  return {above + (cluster - across * down) * kClusterM + in_group % kClusterM,
          across * kClusterN + in_group / kClusterM % kClusterN};
}

// A walk's `tile` is the current one, and `first` and `steps` say which steps along k the CTA computes of it.

/// `tiles` tiles beside each other.
struct StripWalk {
  int tiles, steps, tile = -1;
  static constexpr int first = 0;
  __device__ __forceinline__ bool take() { return ++tile < tiles; }
  __device__ __forceinline__ bool is_last() const { return tile + 1 >= tiles; }
};

/// Every gridDim.x-th tile.
struct GridWalk {
  int tiles, steps, tile;
  static constexpr int first = 0;
  __device__ __forceinline__ GridWalk(int tiles, int steps)
      : tiles(tiles), steps(steps), tile(static_cast<int>(blockIdx.x) - static_cast<int>(gridDim.x)) {}
  __device__ __forceinline__ bool take() { return (tile += gridDim.x) < tiles; }
  __device__ __forceinline__ bool is_last() const { return tile + static_cast<int>(gridDim.x) >= tiles; }
};

/// Stream-K: the tiles that do not fill all CTAs, and one more tile for each CTA, are divided into equal numbers of
/// steps. A CTA begins with its part of these: the end of a tile, whole tiles, and the beginning of a tile. Every
/// gridDim.x-th of the other tiles follows. A part has at least as many steps as a tile, so at most two CTAs share one.
/// There are at least as many tiles as CTAs.
struct StreamWalk {
  int depth, whole;   ///< steps of a tile; tiles of one CTA, before those that are divided
  int at, end, next;  ///< of the parts: this CTA's steps; of the others: the next tile
  int tile, first, steps;

  __device__ __forceinline__ StreamWalk(int tiles, int depth) : depth(depth), next(blockIdx.x) {
    const int ctas = gridDim.x, rest = tiles % ctas, divided = rest == 0 ? 0 : rest + ctas;
    whole = tiles - divided;
    const int each = divided * depth / ctas, more = divided * depth % ctas;  // the first CTAs have a step more
    at = each * next + min(next, more);
    end = at + each + (next < more ? 1 : 0);
  }
  __device__ __forceinline__ bool take() {
    if (at < end) {
      tile = whole + at / depth;
      first = at % depth;
      steps = min(depth - first, end - at);
      at += steps;
      return true;
    }
    tile = next;
    first = 0;
    steps = depth;
    next += gridDim.x;
    return tile < whole;
  }
  __device__ __forceinline__ bool is_last() const { return at >= end && next >= whole; }
  __device__ __forceinline__ bool is_part() const { return steps < depth; }
};
