// What the threads of an attention kernel copy to shared memory that finds S or P in memory: tiles of it, and of V,
// into the ring of stages. S and P are [batch, head, row, key] with rows of `pitch` elements. They are read only where
// a row may see a key, in pieces of 8 keys: nothing else may have been written. The rest of a tile becomes zeros.

struct Loader {
  unsigned ring;
  const Tile& tile;
  const char* scores;  // row 0 of this tile
  int pitch, head_rows;
  KeyRows v;
  TileCopy<ScoreTile, BM, kThreads> score_copy;
  TileCopy<SmemTile, BN, kThreads> v_copy;
  KeyTiles tiles;  // at the next tile to load
  unsigned stage = 0;

  __device__ __forceinline__ Loader(const Launch& launch, const Tile& tile, const Half* scores, int pitch,
                                    const Tensor<const Half>& v, unsigned ring, int thread, int lane)
      : ring(ring),
        tile(tile),
        pitch(pitch),
        head_rows(launch.q_len),
        v(KeyRows::of(launch, tile, v, v)),
        score_copy(thread, 2LL * pitch),
        v_copy(thread, 2 * v.row_stride),
        tiles(tile, lane) {
    const long long row = (static_cast<long long>(tile.batch) * tile.heads + tile.head) * launch.q_len + tile.rows.row0;
    this->scores = reinterpret_cast<const char*>(scores + row * pitch);
    tiles.advance();
  }
  __device__ __forceinline__ bool more() const { return tiles.more(); }
  __device__ __forceinline__ void load() {
    const int key = tiles.at() * BN;
    // Whether a piece of a row has a key that the row may see.
    const auto seen = [&](int i, int chunk) {
      const int first = key + 8 * chunk;
      const int last = kCausal ? min(tile.kv_len - 1, tile.rows.query(i) + tile.lead) : tile.kv_len - 1;
      return tile.rows.used(i) && first <= last && tiles.sees(i, first);
    };
    tile.rows.copy(score_copy, ring + stage, scores + 2 * key, pitch, head_rows, seen, tiles.whole());
    copy_keys<kEvenKv>(v_copy, ring + stage + kScoreBytes, v, key, tile.kv_len);
    v.advance(BN);
    tiles.advance();
    stage = next_stage(stage);
  }
};
