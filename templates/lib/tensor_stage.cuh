// Stores results by TMA. A warp writes its tiles of 16 x 8 elements to shared memory, a slab of 128 bytes of columns at
// a time, and one lane issues the copies of the slab to global memory. The warp's area has kSlots slabs, used in turn:
// a copy reads one while the warp fills the next. A slab is MT pieces of 16 rows of 128 bytes, with the swizzle of 128
// bytes. kPairBytes: of the results that a lane has of two columns of a tile. kMatrices: these are two elements of 16
// bits, which stmatrix writes. The area begins at a multiple of 1024 bytes. Needs lib/tensor_copy.cuh.

/// Writes four matrices of 8 x 8 elements of 16 bits. Lane l gives the address of row l % 8 of matrix l / 8; register q
/// of lane l has row l / 4, columns 2 (l % 4) and the next, of matrix q.
__device__ __forceinline__ void store_matrices(unsigned to, unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], { %1, %2, %3, %4};" ::"r"(to), "r"(w0), "r"(w1), "r"(w2),
               "r"(w3)
               : "memory");
}

template <int MT, int kSlots, int kPairBytes, bool kMatrices>
struct TensorStage {
  static constexpr int kPieceBytes = 16 * 128, kSlabBytes = MT * kPieceBytes, kBytes = kSlots * kSlabBytes;
  static constexpr int kTiles = 32 / kPairBytes;  ///< of a slab
  unsigned char* area;                            ///< of the warp
  unsigned lane_at;  ///< offset of this lane's pair, or of the row that it gives to stmatrix, in the first tiles
  int lane;

  __device__ __forceinline__ TensorStage(unsigned char* shared, int warp, int lane_id)
      : area(shared + warp * kBytes), lane(lane_id) {
    if constexpr (kMatrices) {
      const int row = lane % 16, matrix = lane / 8;  // matrices 0 and 1 are the upper and lower rows of a tile
      lane_at = row * 128 + (matrix / 2 ^ row % 8) * 16;
    } else {
      const int row = lane / 4, byte = lane % 4 * kPairBytes;
      lane_at = row * 128 + (byte / 16 ^ row) * 16 + byte % 16;
    }
  }
  /// Waits until the slab's slot may be overwritten.
  __device__ __forceinline__ void take() const {
    if (lane == 0) tensor_store_wait<kSlots - 1>();
    __syncwarp();
  }
  /// Writes tiles j - 1 and j of piece i. words[tile][half]: the lane's columns in rows l / 4 and l / 4 + 8.
  template <int j>
  __device__ __forceinline__ void put(int i, const unsigned (&words)[2][2]) const {
    store_matrices(static_cast<unsigned>(__cvta_generic_to_shared(at<j - 1>(i, 0))), words[0][0], words[0][1],
                   words[1][0], words[1][1]);
  }
  /// Where the lane's pair of tile j belongs, in row l / 4 + 8 half of piece i.
  template <int j>
  __device__ __forceinline__ unsigned char* at(int i, int half) const {
    constexpr int kByte = j % kTiles * 4 * kPairBytes;
    return area + (slab<j>() + i * kPieceBytes + half * 1024 + (lane_at ^ kByte / 16 * 16) + kByte % 16);
  }
  /// Issues the copies of the slab of tile j to column x; piece i goes to row y + kTileRows * i if that is below
  /// `rows`.
  template <int j, int kTileRows>
  __device__ __forceinline__ void leave(const TensorMap& map, int x, int y, int rows) const {
    end_writes();
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < MT; ++i)
        if (y + kTileRows * i < rows) copy<j>(map, i, x, y + kTileRows * i);
      tensor_store_commit();
    }
    __syncwarp();  // wgmma needs all lanes
  }
  /// The same where the matrix goes on after `rows`: the rows of a piece before them are stored by the warp. `to`: row
  /// y and column x of the matrix, of whose row `bytes` are left.
  template <int j, int kTileRows>
  __device__ __forceinline__ void leave_rows(const TensorMap& map, int x, int y, int rows, char* to,
                                             long long row_bytes, int bytes) const {
    end_writes();
#pragma unroll
    for (int i = 0; i < MT; ++i) {
      const int here = rows - y - kTileRows * i;
      if (here >= 16) {
        if (lane == 0) copy<j>(map, i, x, y + kTileRows * i);
      } else if (lane % 8 * 16 < bytes) {
        for (int row = lane / 8; row < here; row += 4)
          *reinterpret_cast<uint4*>(to + (kTileRows * i + row) * row_bytes + lane % 8 * 16) =
              *reinterpret_cast<const uint4*>(area + slab<j>() + i * kPieceBytes + row * 128 +
                                              (lane % 8 ^ row % 8) * 16);
      }
    }
    if (lane == 0) tensor_store_commit();
    __syncwarp();  // wgmma needs all lanes, and the slab may be overwritten
  }

 private:
  __device__ __forceinline__ void end_writes() const {
    async_proxy_fence();
    __syncwarp();
  }
  template <int j>
  static constexpr int slab() {
    return j / kTiles % kSlots * kSlabBytes;
  }
  template <int j>
  __device__ __forceinline__ void copy(const TensorMap& map, int i, int x, int y) const {
    tensor_store(map, static_cast<unsigned>(__cvta_generic_to_shared(area)) + slab<j>() + i * kPieceBytes, x, y);
  }
};
