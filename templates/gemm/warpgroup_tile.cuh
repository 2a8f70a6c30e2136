// What a CTA of gemm/warpgroup.cu.jinja has to do: the arguments of the launch, its grid of tiles, and the walk over
// the tiles of this CTA. The kernel defines the constants. Needs lib/tile_walk.cuh, lib/group_tile.cuh and
// lib/cluster.cuh.

/// The arguments of a launch, beside its tensors. One that the kernel does not have is 0.
struct Launch {
  int N, K, M = 0;                                     // kGrouped: a tile's rows end with its group
  int k_per_split = 0;                                 // kSplit
  const float *a_scale = nullptr, *b_scale = nullptr;  // kScaled
  const int* offsets = nullptr;                        // kGrouped: the first row of each group
  int groups = 0;                                      // kGrouped
  const int* row_tokens = nullptr;                     // gathered rows: the row of A of each sorted row
  long long row_bytes = 0;                             // gathered rows: from one row of A to the next
  Accumulator* parts = nullptr;                        // kStreams: sums of tiles that two CTAs share
  unsigned* arrivals = nullptr;                        // kStreams: a counter of each such tile
};

/// A tile of C: rows m0 to M, at most BM, and BN columns from n0.
struct Tile {
  int m0, M, n0;
  int group;  // kGrouped: whose B the rows have
};

/// This CTA in its cluster: the row and the column of kClusterM x kClusterN CTAs.
struct ClusterRank {
  int all, m, n;
  __device__ __forceinline__ ClusterRank()
      : all(kCluster > 1 ? cluster_rank() : 0), m(all % kClusterM), n(kClusterN > 1 ? all / kClusterM : 0) {}
};

/// The tiles of a launch, row_tiles x strips (of kWide tiles) in whole clusters.
struct Grid {
  const Launch& launch;
  int strips;
  ClusterRank rank;
  int row_tiles;

  __device__ __forceinline__ explicit Grid(const Launch& launch)
      : launch(launch), strips(ceil_div(launch.N, kClusterN * kWide * BN) * kClusterN) {
    if constexpr (!kGrouped)
      row_tiles = ceil_div(launch.M, kClusterM * BM) * kClusterM;
    else if constexpr (kPersistent)
      row_tiles = count_group_tiles<kClusterM * BM>(launch.offsets, launch.groups) * kClusterM;
    else
      row_tiles = gridDim.x / strips;  // as many as any sizes may need
  }
  /// The first tile of strip `index`. kGrouped: all lanes of the warp call this function.
  __device__ __forceinline__ Tile tile(int index) const {
    const TilePlace place = tile_place<kGroup, kClusterM, kClusterN>(index, row_tiles, strips);
    if constexpr (kGrouped) {
      // The row tiles of a cluster are of one group. Row tiles after its last row compute nothing that is stored.
      const GroupTile rows = find_group_tile<kClusterM * BM>(launch.offsets, launch.groups, place.row / kClusterM);
      return {rows.begin + rank.m * BM, rows.end, place.col * (kWide * BN), rows.group};
    } else {
      return {place.row * BM, launch.M, place.col * (kWide * BN), 0};
    }
  }
};

/// The part of k that this CTA computes: `steps` of kTileK elements from k0 on.
struct Depth {
  int k0, steps;

  __device__ __forceinline__ explicit Depth(const Launch& launch) {
    if constexpr (kSplit) {
      // At least one stage: outside the matrix it is zeros.
      k0 = blockIdx.z * launch.k_per_split;
      steps = max(1, ceil_div(min(launch.k_per_split, launch.K - k0), kTileK));
    } else {
      k0 = 0;
      steps = ceil_div(launch.K, kTileK);
    }
  }
};

/// The walk of a CTA that has one strip: kWide tiles beside each other. The rows are found ahead, once.
struct OneStrip : StripWalk {
  struct Ahead : Tile {
    const ClusterRank& rank;
    __device__ __forceinline__ explicit Ahead(const Grid& grid) : Tile(grid.tile(blockIdx.x)), rank(grid.rank) {}
    /// The grid has more row tiles than these groups need. The same for all CTAs of a cluster.
    __device__ __forceinline__ bool empty() const { return kGrouped && m0 - rank.m * BM == M; }
    /// Tiles of the strip. The same for all CTAs of a cluster: as many as its first column has.
    __device__ __forceinline__ int tiles(int N) const {
      return kWide > 1 ? min(kWide, ceil_div(N - (n0 - rank.n * (kWide * BN)), BN)) : 1;
    }
  };
  const Tile& strip;

  __device__ __forceinline__ OneStrip(const Grid& grid, const Ahead& ahead, const Depth& depth)
      : StripWalk{ahead.tiles(grid.launch.N), depth.steps}, strip(ahead) {}
  __device__ __forceinline__ Tile find(const Grid&) const {
    return {strip.m0, strip.M, strip.n0 + tile * BN, strip.group};
  }
};

/// The walk of a persistent CTA over tiles of the whole grid: GridWalk or StreamWalk.
template <class Order>
struct WholeGrid : Order {
  struct Ahead {
    __device__ __forceinline__ explicit Ahead(const Grid&) {}
    __device__ __forceinline__ bool empty() const { return false; }
  };
  __device__ __forceinline__ WholeGrid(const Grid& grid, Ahead, const Depth& depth)
      : Order(grid.row_tiles * grid.strips, depth.steps) {}
  __device__ __forceinline__ Tile find(const Grid& grid) const { return grid.tile(this->tile); }
};
