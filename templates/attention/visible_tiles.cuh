// The tiles of keys that a CTA of an attention kernel by mma visits: the tiles of its split that have a visible key.

/// Begins before the first.
struct KeyTiles {
  const Tile& tile;
  VisibleTiles visible;  // counts the tiles of the split
  __device__ __forceinline__ KeyTiles(const Tile& tile, int lane)
      : tile(tile),
        visible(kSplit ? ceil_div(max(0, tile.steps - tile.first), tile.stride) : tile.steps - tile.first, lane) {}
  __device__ __forceinline__ bool more() const { return visible.tile < visible.tiles; }
  __device__ __forceinline__ int at() const { return number(visible.tile); }  // number of the tile
  __device__ __forceinline__ bool advance() {
    return visible.next([&](int index) { return part(number(index)); });
  }
  /// Whether all its keys are visible to all rows; whether row i may see a key of the 8 from `key` on, except for
  /// kCausal.
  __device__ __forceinline__ bool whole() const { return visible.whole; }
  __device__ __forceinline__ bool sees(int i, int key) const {
    if (whole()) return true;
    const Bounds<int> row = ::at(tile.rows.query(i) + tile.lead), keys{key, min(key + 8, tile.kv_len) - 1};
    if constexpr (kPacked && kByHead) {
      const Tables of_head = tile.modifiers.tables.of_head(tile.rows.head(i));
      FormulaElement values;
      of_head.load_once(values);
      return visible_part(values, of_head, row, keys).some;
    } else {
      return visible_part(tile.modifiers.once, tile.modifiers.tables, row, keys).some;
    }
  }
  /// Calls step(tile, whether it needs a mask) for all.
  template <class Step>
  __device__ __forceinline__ void each(const Step& step) {
#pragma unroll 1
    while (advance()) {
      if (whole())
        step(at(), Int<false>{});
      else
        step(at(), Int<true>{});
    }
  }
  __device__ __forceinline__ int number(int index) const { return tile.first + index * tile.stride; }
  /// How much of a tile is visible.
  __device__ __forceinline__ Truth part(int number) const {
    const int key = number * BN;
    const Bounds<int> rows{tile.rows.row0 + tile.lead, tile.rows.end_row() - 1 + tile.lead};
    const Bounds<int> keys{key, min(key + BN, tile.kv_len) - 1};
    Truth part = visible_part(tile.modifiers.once, tile.modifiers.tables, tile.rows.heads(), rows, keys);
    if (!kEvenKv && key + BN > tile.kv_len) part.all = false;
    return part;
  }
};
