#include "runtime/sim/tensor_map.h"

#include <cstring>

namespace roofgen::sim {
namespace {

constexpr uint64_t kMark = 0x70616d5f6c656966;  // any number that data is unlikely to be

/// What is in the 128 bytes. A dimension of 2^32 is held as 0.
struct Packed {
  uint64_t mark, address, fill, strides[kMaxTensorRank - 1];
  uint32_t dims[kMaxTensorRank];
  uint16_t box[kMaxTensorRank];
  uint8_t rank, element_bytes, swizzle_bytes, unused[17];
};
static_assert(sizeof(Packed) <= kTensorMapBytes);

}  // namespace

uint64_t TensorView::box_bytes() const {
  uint64_t bytes = element_bytes;
  for (uint32_t i = 0; i < rank; ++i) bytes *= box[i];
  return bytes;
}

/// A kernel may have made the bytes itself.
bool TensorView::plausible() const {
  const bool element = element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
  const bool swizzle = swizzle_bytes == 0 || swizzle_bytes == 32 || swizzle_bytes == 64 || swizzle_bytes == 128;
  if (!element || !swizzle || box[0] * element_bytes % 16 != 0) return false;
  for (uint32_t i = 0; i < rank; ++i)
    if (box[i] == 0 || box[i] > 256) return false;
  return true;
}

void TensorView::encode(std::byte* out) const {
  Packed p{};
  p.mark = kMark;
  p.address = address;
  p.fill = fill;
  for (uint32_t i = 0; i < rank; ++i) {
    if (i) p.strides[i - 1] = strides[i];
    p.dims[i] = static_cast<uint32_t>(dims[i]);
    p.box[i] = static_cast<uint16_t>(box[i]);
  }
  p.rank = static_cast<uint8_t>(rank);
  p.element_bytes = static_cast<uint8_t>(element_bytes);
  p.swizzle_bytes = static_cast<uint8_t>(swizzle_bytes);
  std::memset(out, 0, kTensorMapBytes);
  std::memcpy(out, &p, sizeof p);
}

bool TensorView::decode(const std::byte* in) {
  Packed p;
  std::memcpy(&p, in, sizeof p);
  if (p.mark != kMark || p.rank < 1 || p.rank > kMaxTensorRank) return false;
  address = p.address;
  fill = p.fill;
  rank = p.rank;
  element_bytes = p.element_bytes;
  swizzle_bytes = p.swizzle_bytes;
  strides[0] = element_bytes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (i) strides[i] = p.strides[i - 1];
    dims[i] = p.dims[i] ? p.dims[i] : uint64_t{1} << 32;
    box[i] = p.box[i];
  }
  return plausible();
}

TensorView view_of(const TensorMap& map, uint64_t address) {
  TensorView view;
  view.address = address;
  view.rank = static_cast<uint32_t>(map.dims.size());
  view.element_bytes = static_cast<uint32_t>(size_of(map.dtype));
  view.swizzle_bytes = static_cast<uint32_t>(map.swizzle_bytes);
  if (map.nan_fill) view.fill = view.element_bytes == 4 ? 0x7fffffff : 0x7fff;
  for (uint32_t i = 0; i < view.rank; ++i) {
    view.dims[i] = map.dims[i];
    view.box[i] = map.box[i];
    if (i) view.strides[i] = map.stride_bytes[i - 1];
  }
  return view;
}

}  // namespace roofgen::sim
