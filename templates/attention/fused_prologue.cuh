// What attention/fused.cu.jinja does to Q and to keys before it multiplies them: it rotates them by their positions,
// appends new keys to the cache, and converts tiles of an fp8 cache. Needs attention/rotary.cuh.jinja.

struct Prologue {
  const Inputs& in;
  const Tile& tile;
  int thread;
  Angles angles;
  float to_k_cache, to_v_cache;  // the scales of the cache, inverted
  __device__ __forceinline__ Prologue(const Inputs& in, const Tile& tile, int thread)
      : in(in),
        tile(tile),
        thread(thread),
        angles(in.rotary_table, thread % kUnits),
        to_k_cache(1.0f / tile.k_scale),
        to_v_cache(1.0f / tile.v_scale) {}

  /// Q of the tile, rotated.
  __device__ __forceinline__ void rotate_q(unsigned to) const {
    for_each_unit<kUnits>(BM, thread, [&](int i, int unit) {
      const bool used = tile.rows.used(i);
      const Half* const from = tile.rows_of(in.q) + tile.rows.offset(i, in.q.row_stride, in.q.head_stride);
      move_unit(
          unit, used ? tile.first_new + tile.rows.query(i) : 0, angles,
          [&](int column, float(&x)[8]) {
            unpack8(used ? *reinterpret_cast<const uint4*>(from + column) : uint4{}, x);
          },
          [&](int column, const float(&x)[8]) { store_shared_16(to + SmemTile::offset(i, column / 8), pack8(x)); });
    });
  }

  /// The new keys of the tile's queries to the cache. Of the CTAs that share them, one writes.
  template <class KeyRows>
  __device__ __forceinline__ void append(const Launch& launch, const KeyRows& k, const KeyRows& v) const {
    if constexpr (kAppend) {
      if (kSplit && tile.split != 0) return;
      if (!kPacked && tile.head % launch.group != 0) return;
      const int row0 = tile.rows.row0, rows = tile.rows.end_row() - row0;
      for_each_unit<kUnits>(rows, thread, [&](int i, int unit) {
        const char* const from = k.new_row(row0 + i);
        char* const to = const_cast<char*>(k.old(tile.first_new + row0 + i));
        move_unit(
            unit, tile.first_new + row0 + i, angles,
            [&](int column, float(&x)[8]) { unpack8(*reinterpret_cast<const uint4*>(from + 2 * column), x); },
            [&](int column, const float(&x)[8]) { Cache::store(to, column, x, to_k_cache); });
      });
      for_each_unit<D / 8>(rows, thread, [&](int i, int unit) {
        const uint4 words = reinterpret_cast<const uint4*>(v.new_row(row0 + i))[unit];
        char* const to = const_cast<char*>(v.old(tile.first_new + row0 + i));
        Cache::store(to, 8 * unit, words, to_v_cache);
      });
    }
  }

  /// Tile j, which has arrived in `stage`, for the products.
  template <class KeyRows>
  __device__ __forceinline__ void prepare(const KeyRows& k, const KeyRows& v, unsigned ring, unsigned stage,
                                          int j) const {
    if constexpr (kFp8) {
      convert_tiles(tile, k, v, ring + stage, ring + kMultipliedAt, j * BN, angles, to_k_cache, to_v_cache, thread);
      __syncthreads();
    } else if constexpr (kRotatesKeys) {
      // The first key of the tile that is not rotated yet.
      const int unrotated = kAppend ? max(0, tile.first_new - j * BN) : 0;
      if (kAppend && unrotated >= BN) return;
      for_each_unit<kUnits>(BN, thread, [&](int row, int unit) {
        if ((kAppend && row < unrotated) || j * BN + row >= tile.kv_len) return;
        const auto at = [&](int column) { return ring + stage + SmemTile::offset(row, column / 8); };
        move_unit(
            unit, j * BN + row, angles, [&](int column, float(&x)[8]) { unpack8(load_shared_16(at(column)), x); },
            [&](int column, const float(&x)[8]) { store_shared_16(at(column), pack8(x)); });
      });
      __syncthreads();
    }
  }
};
