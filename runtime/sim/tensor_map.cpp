#include "runtime/sim/tensor_map.h"

#include <cstring>
#include <iterator>

namespace roofgen::sim {
namespace {

constexpr uint64_t kMark = 0x70616d5f6c656966;  // any number that data is unlikely to be

/// What is in the 128 bytes. A dimension of 2^32 is held as 0.
struct Packed {
  uint64_t mark, address, fill, strides[kMaxTensorRank - 1];
  uint32_t dims[kMaxTensorRank];
  uint16_t box[kMaxTensorRank];
  uint8_t rank, element_bytes, swizzle_bytes, data;
  int16_t lower[kMaxTensorRank - 2], upper[kMaxTensorRank - 2];
  uint8_t more_atom, more_steps[kMaxTensorRank], im2col;  ///< beyond 16 bytes and 1 element
  uint8_t more_per_byte, to_tf32;                         ///< beyond 1
};
static_assert(sizeof(Packed) <= kTensorMapBytes);

}  // namespace

uint64_t TensorView::box_bytes() const {
  uint64_t bytes = element_bytes;
  for (uint32_t i = 0; i < (im2col ? 2 : rank); ++i) bytes *= im2col ? box[i] : side(i);
  return bytes;
}

/// A kernel may have made the bytes itself.
bool TensorView::plausible() const {
  const bool element = element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
  const bool swizzle = swizzle_bytes == 0 || swizzle_bytes == 32 || swizzle_bytes == 64 || swizzle_bytes == 128;
  const bool pieces = atom == 16 || (swizzle_bytes == 128 && (atom == 32 || atom == 64));
  const bool packed = per_byte == 1 || (per_byte == 2 && element_bytes == 1);
  if (!element || !packed || !swizzle || !pieces || box[0] * element_bytes % 16 != 0 || steps[0] != 1) return false;
  if (im2col) return rank >= 3 && box[0] > 0 && box[0] <= 256 && box[1] > 0 && box[1] <= 1024;
  for (uint32_t i = 0; i < rank; ++i)
    if (box[i] == 0 || box[i] > 256 || steps[i] == 0 || steps[i] > 8) return false;
  return true;
}

void TensorView::encode(std::byte* out) const {
  Packed p{};
  p.mark = kMark;
  p.address = address;
  p.fill = fill;
  for (uint32_t i = 0; i < kMaxTensorRank; ++i) {
    if (i) p.strides[i - 1] = strides[i];
    p.dims[i] = static_cast<uint32_t>(dims[i]);
    p.box[i] = static_cast<uint16_t>(box[i]);
    p.more_steps[i] = static_cast<uint8_t>(steps[i] - 1);
  }
  for (uint32_t i = 0; i < std::size(lower); ++i) {
    p.lower[i] = static_cast<int16_t>(lower[i]);
    p.upper[i] = static_cast<int16_t>(upper[i]);
  }
  p.rank = static_cast<uint8_t>(rank);
  p.element_bytes = static_cast<uint8_t>(element_bytes);
  p.data = static_cast<uint8_t>(data);
  p.swizzle_bytes = static_cast<uint8_t>(swizzle_bytes);
  p.more_atom = static_cast<uint8_t>(atom - 16);
  p.im2col = im2col;
  p.more_per_byte = static_cast<uint8_t>(per_byte - 1);
  p.to_tf32 = to_tf32;
  std::memset(out, 0, kTensorMapBytes);
  std::memcpy(out, &p, sizeof p);
}

bool TensorView::read(const std::byte* in) {
  Packed p;
  std::memcpy(&p, in, sizeof p);
  if (p.mark != kMark || p.rank < 1 || p.rank > kMaxTensorRank) return false;
  address = p.address;
  fill = p.fill;
  rank = p.rank;
  element_bytes = p.element_bytes;
  data = static_cast<TensorData>(p.data);
  swizzle_bytes = p.swizzle_bytes;
  atom = p.more_atom + 16u;
  im2col = p.im2col;
  per_byte = p.more_per_byte + 1u;
  to_tf32 = p.to_tf32;
  strides[0] = element_bytes;
  for (uint32_t i = 0; i < kMaxTensorRank; ++i) {
    if (i) strides[i] = p.strides[i - 1];
    dims[i] = p.dims[i] || i >= rank ? p.dims[i] : uint64_t{1} << 32;
    box[i] = p.box[i];
    steps[i] = p.more_steps[i] + 1u;
  }
  for (uint32_t i = 0; i < std::size(lower); ++i) lower[i] = p.lower[i], upper[i] = p.upper[i];
  return true;
}

TensorView view_of(const TensorMap& map, uint64_t address) {
  TensorView view;
  view.address = address;
  view.rank = static_cast<uint32_t>(map.dims.size());
  view.element_bytes = static_cast<uint32_t>(size_of(map.dtype));
  view.data = map.dtype == DType::kBf16    ? TensorData::kBf16
              : map.dtype == DType::kFp16  ? TensorData::kF16
              : map.dtype == DType::kInt32 ? TensorData::kS32
              : view.element_bytes == 4    ? TensorData::kF32
                                           : TensorData::kU8;
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
