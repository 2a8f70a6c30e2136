// The parts of attention/scores.cu.jinja: what a CTA has to do, the copies of K, the product, and the end of a tile.

/// Where the strip of a CTA lies. The row tiles of a strip follow each other: they share K in L2.
struct StripPlace {
  int row_tiles, row, first;  // first: the strip's first tile of keys
  int head = blockIdx.y, batch = blockIdx.z;
  static constexpr int part = 0;
  __device__ __forceinline__ explicit StripPlace(const Launch& launch)
      : row_tiles(ceil_div(launch.q_len, Rows::queries(launch.group))),
        row(blockIdx.x % row_tiles),
        first(blockIdx.x / row_tiles * kStrip) {}
};

/// Rows of a CTA, and its strip of the keys that they see.
struct Strip : Tile {
  __device__ __forceinline__ explicit Strip(const Launch& launch) : Tile(launch, StripPlace(launch)) {
    steps = first + min(steps - first, kStrip);
  }
  /// No such rows, or no keys that they see.
  __device__ __forceinline__ bool empty() const {
    return Tile::empty() || ((kCausal || kVarlen || kRagged) && steps <= first);
  }
};

/// Copies tiles of K into the ring of stages.
struct Loader {
  unsigned ring;
  const Tile& tile;
  KeyRows k;
  TileCopy<SmemTile, BN, kThreads> copy;
  KeyTiles tiles;  // at the next tile to load
  unsigned stage = 0;
  __device__ __forceinline__ Loader(const Launch& launch, const Tile& tile, const Tensor<const Half>& keys,
                                    unsigned ring, int thread, int lane)
      : ring(ring),
        tile(tile),
        k(KeyRows::of(launch, tile, keys, keys)),
        copy(thread, 2 * keys.row_stride),
        tiles(tile, lane) {
    tiles.advance();
  }
  __device__ __forceinline__ bool more() const { return tiles.more(); }
  __device__ __forceinline__ void load() {
    copy_keys<kEvenKv>(copy, ring + stage, k, tiles.at() * BN, tile.kv_len);
    k.advance(BN);
    tiles.advance();
    stage = next_stage(stage);
  }
};

/// S = Q K^T of the tile in `stage`.
template <class QBlocks, class KBlocks>
__device__ __forceinline__ void multiply(float (&c)[MT][NT][4], const QBlocks& q_blocks, const KBlocks& k_blocks,
                                         unsigned stage) {
  static_for<D / 16>([&](auto step) {
    constexpr int kStep = decltype(step)::value;
    unsigned a[MT][4];
    static_for<MT>([&](auto tile) {
      constexpr int i = decltype(tile)::value;
      q_blocks.template load<16 * i, kStep>(a[i], 0);
    });
    static_for<NT / 2>([&](auto pair) {
      constexpr int kPair = decltype(pair)::value;
      unsigned b[4];
      k_blocks.template load<16 * kPair, kStep>(b, stage);
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        mma_m16n8k16<Half>(c[i][2 * kPair], a[i], b[0], b[1]);
        mma_m16n8k16<Half>(c[i][2 * kPair + 1], a[i], b[2], b[3]);
      }
    });
  });
}

/// Rounds tiles of S and writes them, through a part of shared memory of each warp. S has `head_rows` rows of a head.
struct StripStore {
  const Tile& tile;
  const Place& at;
  char* s;  // this warp's columns of row 0; without a mask, of the next tile, whose place is carried along
  int pitch, head_rows;
  unsigned stage;
  float factor[MT][2];
  __device__ __forceinline__ StripStore(const Tile& tile, const Place& at, Half* s, int pitch, int head_rows,
                                        unsigned stages)
      : tile(tile), at(at), pitch(pitch), head_rows(head_rows), stage(stages + at.warp * kWarpRows * OutTile::kPitch) {
    const long long row = (static_cast<long long>(tile.batch) * tile.heads + tile.head) * head_rows + tile.rows.row0;
    Half* const place = tile.rows.first_place(s + row * pitch, at.warp_row, pitch) + at.warp_col;
    this->s = reinterpret_cast<char*>(kHasMask ? place : place + tile.first * BN);
#pragma unroll
    for (int i = 0; i < MT; ++i) factor[i][0] = factor[i][1] = kScored ? 1.0f : tile.scale;
  }
  __device__ __forceinline__ void operator()(const float (&c)[MT][NT][4], int j) {
    __syncwarp();  // the previous tile has been read from the staging area
    stage_tile<Half, OutTile>(c, factor, stage, at.lane);
    __syncwarp();
    const int chunks = (pitch - j * BN - at.warp_col) / 8;
    char* const to = kHasMask ? s + 2 * j * BN : s;
    tile.rows.store_scores<OutTile, kWarpRows, kEvenKv>(stage, at.warp_row, to, pitch, head_rows, chunks, at.lane);
    if constexpr (!kHasMask) s += 2 * BN;
  }
};
