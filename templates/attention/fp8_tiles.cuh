// Tiles of an fp8 cache in attention/fused.cu.jinja. All threads convert a tile that has arrived to a tile of 16 bits,
// in which mma reads K and V. V and P are fp16, to which fp8 converts in one instruction for two elements. Needs
// attention/rotary.cuh.jinja.

/// Eight elements to a row of the cache, times the cache's scale, inverted.
struct Fp8Cache {
  static __device__ __forceinline__ void store(char* row, int column, const float (&x)[8], float scale) {
    *reinterpret_cast<uint2*>(row + column) = quantised(x, scale);
  }
  static __device__ __forceinline__ void store(char* row, int column, const uint4& words, float scale) {
    float x[8];
    unpack8(words, x);
    store(row, column, x, scale);
  }
  /// The values that a row of the cache gets, as elements of T.
  template <class T>
  static __device__ __forceinline__ uint4 kept(const float (&x)[8], float scale) {
    const uint2 words = quantised(x, scale), low = to_half4<T>(words.x), high = to_half4<T>(words.y);
    return {low.x, low.y, high.x, high.y};
  }
};
using Cache = Fp8Cache;

/// The tile of the keys from `first` on, except new ones, which are not in the cache yet.
template <class T>
__device__ __forceinline__ void convert_tile(const Tile& tile, unsigned from, unsigned to, int first, int thread) {
  for_each_unit<D / 16>(BN, thread, [&](int row, int unit) {
    if (kAppend && first + row >= tile.first_new && first + row < tile.kv_len) return;
    const uint4 words = load_shared_16(from + CopiedTile::offset(row, unit));
    const uint2 a = to_half4<T>(words.x), b = to_half4<T>(words.y);
    const uint2 c = to_half4<T>(words.z), d = to_half4<T>(words.w);
    // Of eight lanes that store even chunks of a row, half would meet the banks of the others.
    const bool second_first = unit & 4;
    const uint4 low{a.x, a.y, b.x, b.y}, high{c.x, c.y, d.x, d.y};
    store_shared_16(to + SmemTile::offset(row, 2 * unit + second_first), second_first ? high : low);
    store_shared_16(to + SmemTile::offset(row, 2 * unit + !second_first), second_first ? low : high);
  });
}

/// K and V of the keys from `first` on.
template <class KeyRows>
__device__ __forceinline__ void convert_tiles(const Tile& tile, const KeyRows& k, const KeyRows& v, unsigned from,
                                              unsigned to, int first, const Angles& angles, float to_k_cache,
                                              float to_v_cache, int thread) {
  convert_tile<Half>(tile, from, to, first, thread);
  convert_tile<ValueHalf>(tile, from + kTileBytes, to + kMultipliedBytes, first, thread);
  if constexpr (kAppend) {
    const int begin = max(0, tile.first_new - first), end = min(BN, tile.kv_len - first);
    if (begin >= end) return;
    for_each_unit<kUnits>(end - begin, thread, [&](int i, int unit) {
      const int row = begin + i, key = first + row;
      const char* const fresh = k.new_row(key - tile.first_new);
      move_unit(
          unit, key, angles,
          [&](int column, float(&x)[8]) { unpack8(*reinterpret_cast<const uint4*>(fresh + 2 * column), x); },
          [&](int column, const float(&x)[8]) {
            store_shared_16(to + SmemTile::offset(row, column / 8), Cache::kept<Half>(x, to_k_cache));
          });
    });
    for_each_unit<D / 8>(end - begin, thread, [&](int i, int unit) {
      const int row = begin + i;
      float x[8];
      unpack8(reinterpret_cast<const uint4*>(v.new_row(first + row - tile.first_new))[unit], x);
      store_shared_16(to + kMultipliedBytes + SmemTile::offset(row, unit), Cache::kept<ValueHalf>(x, to_v_cache));
    });
  }
}
