// What the threads of attention/fused.cu.jinja copy to shared memory: Q, and tiles of K and V into the ring of stages.

/// The tensors that a launch reads.
struct Inputs {
  Tensor<const Half> q;
  Tensor<const Element> k, v;
  Tensor<const Half> k_new{}, v_new{};  // kAppend: of the keys that are not in K and V yet
  const float* rotary_table = nullptr;
};

/// Runs ahead of the products by up to kStages - 1 tiles.
struct Loader {
  unsigned ring;
  const Tile& tile;
  KeyRows k, v;
  TileCopy<CopiedTile, BN, kThreads> k_copy, v_copy;
  KeyTiles tiles;  // at the next tile to load
  unsigned stage = 0;

  __device__ __forceinline__ Loader(const Launch& launch, const Inputs& in, const Tile& tile, unsigned ring, int thread,
                                    int lane)
      : ring(ring),
        tile(tile),
        k(KeyRows::of(launch, tile, in.k, in.k_new)),
        v(KeyRows::of(launch, tile, in.v, in.v_new)),
        k_copy(thread, sizeof(Element) * in.k.row_stride),
        v_copy(thread, sizeof(Element) * in.v.row_stride),
        tiles(tile, lane) {
    tiles.advance();
  }
  __device__ __forceinline__ bool more() const { return tiles.more(); }
  __device__ __forceinline__ void load_k() const {
    copy_keys<kEvenKv>(k_copy, ring + stage, k, tiles.at() * BN, tile.kv_len);
  }
  __device__ __forceinline__ void load_v() const {
    copy_keys<kEvenKv>(v_copy, ring + stage + kTileBytes, v, tiles.at() * BN, tile.kv_len);
  }
  __device__ __forceinline__ void advance() {
    k.advance(tile.stride * BN);
    v.advance(tile.stride * BN);
    tiles.advance();
    stage = next_stage(stage);
  }
};

/// Copies the tile's rows of Q.
__device__ __forceinline__ void load_q(const Inputs& in, const Tile& tile, unsigned to, int thread) {
  const TileCopy<SmemTile, BM, kThreads> copy(thread, 2 * in.q.row_stride);
  tile.rows.copy(copy, to, reinterpret_cast<const char*>(tile.rows_of(in.q)), in.q);
}
