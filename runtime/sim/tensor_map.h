// A tensor map (CUtensorMap): the description of a tensor in device memory for the copy engine. The driver's layout of
// its 128 bytes is not documented; this one has a mark that distinguishes it from other data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roofgen/pipeline.h"

namespace roofgen::sim {

inline constexpr uint32_t kTensorMapBytes = 128;
inline constexpr uint32_t kMaxTensorRank = 5;

/// Dimension 0 is contiguous.
struct TensorView {
  uint64_t address = 0;
  uint32_t rank = 0, element_bytes = 0;
  uint32_t swizzle_bytes = 0;  ///< 0, 32, 64 or 128: 16-byte pieces change places within rows of so many
  uint64_t fill = 0;           ///< one element outside the tensor
  uint64_t dims[kMaxTensorRank] = {}, strides[kMaxTensorRank] = {};  ///< elements; bytes
  uint32_t box[kMaxTensorRank] = {};                                 ///< elements

  uint64_t box_bytes() const;
  void encode(std::byte* out) const;
  /// False: the bytes are no tensor map.
  bool decode(const std::byte* in);
  /// Whether the elements, the box and the swizzle can be.
  bool plausible() const;
};

/// Of a map without fault_in(map, address).
TensorView view_of(const TensorMap& map, uint64_t address);

}  // namespace roofgen::sim
