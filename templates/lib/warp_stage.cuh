// Stores accumulators in any output format with 16-byte accesses: a warp writes pairs of columns to its own kRows x
// kBytes of shared memory and reads pieces of 16 bytes back. No barrier of the CTA is needed.

template <int kRows, int kBytes>
struct WarpStage {
  using Layout = TileLayout<kBytes / 2, true>;
  static_assert(kBytes % 32 == 0, "rows of whole pairs of pieces");
  unsigned char* tile;
  int lane_id;

  __device__ __forceinline__ WarpStage(unsigned char* shared, int warp, int lane)
      : tile(shared + warp * kRows * Layout::kPitch), lane_id(lane) {}

  /// Addresses of lane l: row l / 4, pair l % 4 of kPairBytes, of n8 tile j (whose rows have 4 kPairBytes).
  template <int kPairBytes>
  struct Lane {
    unsigned char* at_chunk[Layout::kGroup];  // by chunk within a swizzle group; unused entries are dead code
    template <int j>
    __device__ __forceinline__ unsigned char* at(int row) const {
      constexpr int kByte = 4 * kPairBytes * j, kChunk = kByte / 16;
      return at_chunk[kChunk % Layout::kGroup] +
             (kChunk / Layout::kGroup * Layout::kGroup * 16 + kByte % 16 + row * Layout::kPitch);
    }
  };
  template <int kPairBytes>
  __device__ __forceinline__ Lane<kPairBytes> lane() const {
    Lane<kPairBytes> out;
    const int byte = lane_id % 4 * kPairBytes;
#pragma unroll
    for (int chunk = 0; chunk < Layout::kGroup; ++chunk)
      out.at_chunk[chunk] = tile + (Layout::offset(lane_id / 4, chunk + byte / 16) + byte % 16);
    return out;
  }

  /// Copies the first `bytes` (a multiple of 16) of the first `rows` rows to global memory. kWhole: the whole tile.
  template <bool kWhole>
  __device__ __forceinline__ void leave(char* to, long long row_bytes, int rows, int bytes) const {
    constexpr int kChunks = Layout::kChunks, kStep = 32 / kChunks;  // rows of a pass
    constexpr int kKeys = kStep < 8 ? 8 / kStep : 1;                // passes until the swizzle repeats
    static_assert(32 % kChunks == 0 && kRows % kStep == 0, "a pass is whole rows");
    const int row = lane_id / kChunks, chunk = lane_id % kChunks;
    const unsigned char* from[kKeys];
#pragma unroll
    for (int i = 0; i < kKeys; ++i) from[i] = tile + Layout::offset(row + i * kStep, chunk);
    char* p = to + row * row_bytes + chunk * 16;
    const bool inside = kWhole || chunk * 16 < bytes;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      const uint4 piece = *reinterpret_cast<const uint4*>(from[i % kKeys] + i / kKeys * kKeys * kStep * Layout::kPitch);
      if (kWhole || (inside && row + i * kStep < rows)) *reinterpret_cast<uint4*>(p) = piece;
      p += kStep * row_bytes;
    }
  }
};
