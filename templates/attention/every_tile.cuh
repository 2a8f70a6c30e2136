// The tiles of keys that a CTA of an attention kernel by mma visits: all that its rows may see, or all of its split.

/// Begins before the first.
struct KeyTiles {
  const Tile& tile;
  int number;
  __device__ __forceinline__ KeyTiles(const Tile& tile, int) : tile(tile), number(tile.first - tile.stride) {}
  __device__ __forceinline__ bool more() const { return number < tile.steps; }
  __device__ __forceinline__ int at() const { return number; }
  __device__ __forceinline__ bool advance() {
    number += tile.stride;
    return more();
  }
  /// Whether all its keys are visible to all rows; whether row i may see a key of the 8 from `key` on, except for
  /// kCausal.
  __device__ __forceinline__ bool whole() const { return number < tile.unmasked; }
  __device__ __forceinline__ bool sees(int, int) const { return true; }
  /// Calls step(tile, whether it needs a mask) for all.
  template <class Step>
  __device__ __forceinline__ void each(const Step& step) {
    advance();
#pragma unroll 1
    for (; number < tile.unmasked; advance()) step(number, Int<false>{});
    if constexpr (kCausal || !kEvenKv) {
#pragma unroll 1
      for (; more(); advance()) step(number, Int<true>{});
    }
  }
};
