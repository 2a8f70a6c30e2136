// Stores 16-bit results by TMA. A warp writes its tiles of 16 x 8 elements to shared memory by stmatrix, a slab of 64
// columns at a time, and one lane issues the copies of the slab to global memory. The warp's area has kSlots slabs,
// used in turn: a copy reads one while the warp fills the next. A slab is MT pieces of 16 rows of 128 bytes, with the
// swizzle of 128 bytes: the eight rows that a phase of stmatrix writes lie in different banks. The area begins at a
// multiple of 1024 bytes. Needs lib/tensor_copy.cuh.

/// Writes four matrices of 8 x 8 elements of 16 bits. Lane l gives the address of row l % 8 of matrix l / 8; register q
/// of lane l has row l / 4, columns 2 (l % 4) and the next, of matrix q.
__device__ __forceinline__ void store_matrices(unsigned to, unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], { %1, %2, %3, %4};" ::"r"(to), "r"(w0), "r"(w1), "r"(w2),
               "r"(w3)
               : "memory");
}

template <int MT, int kSlots>
struct TensorStage {
  static constexpr int kPieceBytes = 16 * 128, kSlabBytes = MT * kPieceBytes, kBytes = kSlots * kSlabBytes;
  unsigned area, lane_at;  ///< of the warp; of the row that this lane gives, in the first pair of tiles
  int lane;

  __device__ __forceinline__ TensorStage(unsigned shared, int warp, int lane_id)
      : area(shared + warp * kBytes), lane(lane_id) {
    const int row = lane % 16, matrix = lane / 8;  // matrices 0 and 1 are the upper and lower rows of a tile
    lane_at = area + row * 128 + (matrix / 2 ^ row % 8) * 16;
  }
  /// Waits until the slab's slot may be overwritten.
  __device__ __forceinline__ void take() const {
    if (lane == 0) tensor_store_wait<kSlots - 1>();
    __syncwarp();
  }
  /// Writes tiles j - 1 and j of piece i. words[tile][half]: the lane's columns in rows l / 4 and l / 4 + 8.
  template <int j>
  __device__ __forceinline__ void put(int i, const unsigned (&words)[2][2]) const {
    constexpr int kSlot = j / 8 % kSlots, kChunk = j / 2 * 2 % 8;
    store_matrices((lane_at ^ kChunk * 16) + kSlot * kSlabBytes + i * kPieceBytes, words[0][0], words[0][1],
                   words[1][0], words[1][1]);
  }
  /// Issues the copies of the slab of tile j to column x; piece i goes to row y + kTileRows * i if that is below
  /// `rows`.
  template <int j, int kTileRows>
  __device__ __forceinline__ void leave(const TensorMap& map, int x, int y, int rows) const {
    async_proxy_fence();
    __syncwarp();
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < MT; ++i)
        if (y + kTileRows * i < rows)
          tensor_store(map, area + j / 8 % kSlots * kSlabBytes + i * kPieceBytes, x, y + kTileRows * i);
      tensor_store_commit();
    }
  }
};
