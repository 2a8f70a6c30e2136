// A tensor map (CUtensorMap): the description of a tensor in device memory for the copy engine. The driver's layout of
// its 128 bytes is not documented; this one has a mark that distinguishes it from other data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roofgen/pipeline.h"

namespace roofgen::sim {

inline constexpr uint32_t kTensorMapBytes = 128;
inline constexpr uint32_t kMaxTensorRank = 5;

/// Fields of tensormap.replace, by TensorMapOp.
inline constexpr const char* kTensorMapFields[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

/// Elements, in the order of the driver's CUtensorMapDataType.
enum class TensorData : uint8_t { kU8, kU16, kU32, kS32, kU64, kS64, kF16, kF32, kF64, kBf16 };

/// Dimension 0 is contiguous.
struct TensorView {
  uint64_t address = 0;
  uint32_t rank = 0, element_bytes = 0;
  TensorData data = TensorData::kU8;  ///< for reductions
  uint32_t swizzle_bytes = 0;         ///< 0, 32, 64 or 128: pieces change places within rows of so many
  uint32_t atom = 16;                 ///< bytes of these pieces: 16, or 32 or 64 with rows of 128
  uint64_t fill = 0;                  ///< one element outside the tensor
  bool to_tf32 = false;               ///< copies into shared memory round to 10 fraction bits
  uint32_t per_byte = 1;              ///< 2: of 4 bits; the sides along dimension 0 are in bytes, coordinates are not
  uint64_t dims[kMaxTensorRank] = {}, strides[kMaxTensorRank] = {};  ///< elements; bytes
  uint32_t box[kMaxTensorRank] = {};  ///< elements; of an im2col map, channels of a pixel and pixels of a column
  uint32_t steps[kMaxTensorRank] = {1, 1, 1, 1, 1};  ///< from one element of the box to the next
  /// An im2col map: where the corner of the filter may be in W, H and D, from 0 and from the last element on.
  bool im2col = false;
  int32_t lower[kMaxTensorRank - 2] = {}, upper[kMaxTensorRank - 2] = {};

  /// Elements of the box along a dimension.
  uint32_t side(uint32_t d) const { return (box[d] + steps[d] - 1) / steps[d]; }
  uint64_t box_bytes() const;
  /// Where a piece of a swizzled box lies.
  uint64_t swizzled(uint64_t at) const {
    return swizzle_bytes ? at ^ (at >> 7 & (swizzle_bytes / atom - 1)) * atom : at;
  }
  void encode(std::byte* out) const;
  /// False: the bytes are no tensor map.
  bool read(const std::byte* in);
  /// The same, or no copy may use the map.
  bool decode(const std::byte* in) { return read(in) && plausible(); }
  /// Whether the elements, the box and the swizzle can be.
  bool plausible() const;
};

/// Of a map without fault_in(map, address).
TensorView view_of(const TensorMap& map, uint64_t address);

}  // namespace roofgen::sim
