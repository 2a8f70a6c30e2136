// Operands of an epilogue, loaded by TMA into a ring in shared memory. A slot has a slab of each tensor, one after the
// other: kRows rows of 128 bytes of columns, with the swizzle of 128 bytes. kSize: bytes of an element. The ring begins
// at a multiple of 1024 bytes.

template <int kRows, int kSize, int kTensors>
struct OperandSlabs {
  static constexpr int kBytes = kTensors * kRows * 128;  ///< of a slot
  static constexpr int kTiles = 16 / kSize;              ///< of 8 columns, in a slab
  const unsigned char* lane_at;  ///< this lane's pair of columns in the first tile of a slab, in the warp's first row
  unsigned lane_byte;

  static __device__ __forceinline__ constexpr int offset(int slot, int tensor) {
    return slot * kBytes + tensor * kRows * 128;
  }
  __device__ __forceinline__ OperandSlabs(const unsigned char* ring, int warp_row, int lane)
      : lane_at(ring + (warp_row + lane / 4) * 128) {
    const unsigned byte = lane % 4 * 2 * kSize;
    lane_byte = (byte / 16 ^ lane / 4) * 16 + byte % 16;
  }
  /// The lane's pair of columns of tile j, `row` rows below the warp's first, a multiple of 8.
  template <class Element, int j>
  __device__ __forceinline__ const Element* at(int slot, int tensor, int row) const {
    constexpr int kByte = j % kTiles * 8 * kSize;
    return reinterpret_cast<const Element*>(lane_at + offset(slot, tensor) + row * 128 +
                                            ((lane_byte ^ kByte / 16 * 16) + kByte % 16));
  }
};
