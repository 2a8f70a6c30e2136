#include "runtime/sim/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "runtime/sim/atomics.h"

namespace roofgen::sim {
namespace {

constexpr uint64_t kMark = 0x6567616d695f6463;  // any number that data is unlikely to be
constexpr int64_t kFractions = 256;             // of a texel, in coordinates of linear filtering

/// What is in the bytes of a description. A kernel may have written them, so none of them is a bool.
struct Packed {
  uint64_t mark, address, pitch, slice;
  uint32_t dims[3], layers;
  float border[4];
  uint8_t rank, format, channels, mode[3], flags;
};
constexpr bool Image::*kFlags[] = {&Image::is_surface, &Image::is_memory, &Image::linear, &Image::unit_coordinates,
                                   &Image::unit_values};
static_assert(sizeof(Packed) <= kImageBytes);

/// The texel of a number along one axis; false: none.
bool bring_inside(AddressMode mode, int64_t size, int64_t at, uint32_t* out) {
  int64_t inside = std::clamp<int64_t>(at, 0, size - 1);
  if (mode == AddressMode::kBorder && inside != at) return false;
  if (mode == AddressMode::kWrap) inside = ((at % size) + size) % size;
  if (mode == AddressMode::kMirror) {
    const int64_t period = 2 * size, in_period = ((at % period) + period) % period;
    inside = std::min(in_period, period - 1 - in_period);
  }
  *out = static_cast<uint32_t>(inside);
  return true;
}

/// Wrapping and mirroring are defined for coordinates from 0 to 1 only; others clamp.
AddressMode mode_of(const Image& image, uint32_t axis) {
  const AddressMode mode = image.mode[axis];
  const bool repeats = mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  return repeats && !image.unit_coordinates ? AddressMode::kClamp : mode;
}

/// A coordinate in texels: no NaN, and small enough for integers. Of an image that repeats, the same place in it.
double in_texels(const Image& image, uint32_t axis, float coordinate) {
  constexpr double kFar = 1 << 30;
  double x = std::isnan(coordinate) ? 0 : static_cast<double>(coordinate);
  if (std::isinf(x)) return std::copysign(kFar, x);
  if (image.unit_coordinates) {
    if (mode_of(image, axis) == AddressMode::kWrap) x -= std::floor(x);
    if (mode_of(image, axis) == AddressMode::kMirror) x = std::fabs(x - 2 * std::floor((x + 1) / 2));
    x *= image.dims[axis];
  }
  return std::clamp(x, -kFar, kFar);
}

Tap tap(const Image& image, const int64_t* at, float weight) {
  Tap t{{0, 0, 0}, weight, true};
  for (uint32_t axis = 0; axis < image.rank; ++axis)
    t.inside &= bring_inside(mode_of(image, axis), image.dims[axis], at[axis], &t.at[axis]);
  return t;
}

uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }

template <class T>
uint32_t channel(const Image& image, const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if (!image.unit_values) return static_cast<uint32_t>(value);
  const float x = static_cast<float>(value) / static_cast<float>(std::numeric_limits<T>::max());
  return as_bits(std::max(x, -1.0f));
}

}  // namespace

uint32_t bytes_of(TexelFormat format) {
  switch (format) {
    case TexelFormat::kU8:
    case TexelFormat::kS8: return 1;
    case TexelFormat::kU16:
    case TexelFormat::kS16:
    case TexelFormat::kF16: return 2;
    case TexelFormat::kU32:
    case TexelFormat::kS32:
    case TexelFormat::kF32: return 4;
  }
  return 0;
}

std::string Image::fault() const {
  if (rank < 1 || rank > 3 || (layers && rank == 3)) return fmt::format("{} dimensions", rank + (layers ? 1u : 0u));
  if (!bytes_of(format)) return fmt::format("unknown format {} of its channels", static_cast<int>(format));
  if (channels != 1 && channels != 2 && channels != 4) return fmt::format("{} channels; 1, 2 or 4 exist", channels);
  for (uint32_t axis = 0; axis < rank; ++axis)
    if (dims[axis] == 0 || dims[axis] > 1u << 30) return fmt::format("{} texels along axis {}", dims[axis], axis);
  if (address % texel_bytes() || pitch % texel_bytes() || slice % texel_bytes())
    return fmt::format("rows are not aligned to its {} bytes", texel_bytes());
  if (is_surface) return "";
  for (const AddressMode m : mode)
    if (m > AddressMode::kBorder) return fmt::format("unknown address mode {}", static_cast<int>(m));
  if (unit_values && (is_float(format) || bytes_of(format) == 4))
    return "only integers of 8 and 16 bits are read as floats from 0 to 1";
  if (linear && !is_read_as_float()) return "linear filtering needs values that are read as floats";
  if (is_memory && (linear || unit_coordinates))
    return "plain memory in one dimension has neither filtering nor coordinates from 0 to 1";
  return "";
}

void Image::encode(std::byte* out) const {
  Packed p;
  std::memset(&p, 0, sizeof p);
  p.mark = kMark;
  p.address = address;
  p.pitch = pitch;
  p.slice = slice;
  std::copy_n(dims, 3, p.dims);
  p.layers = layers;
  std::copy_n(border, 4, p.border);
  p.rank = static_cast<uint8_t>(rank);
  p.format = static_cast<uint8_t>(format);
  p.channels = static_cast<uint8_t>(channels);
  for (size_t i = 0; i < 3; ++i) p.mode[i] = static_cast<uint8_t>(mode[i]);
  for (size_t i = 0; i < std::size(kFlags); ++i) p.flags |= static_cast<uint8_t>(this->*kFlags[i] << i);
  std::memset(out, 0, kImageBytes);
  std::memcpy(out, &p, sizeof p);
}

bool Image::decode(const std::byte* in) {
  Packed p;
  std::memcpy(&p, in, sizeof p);
  if (p.mark != kMark) return false;
  address = p.address;
  pitch = p.pitch;
  slice = p.slice;
  std::copy_n(p.dims, 3, dims);
  layers = p.layers;
  std::copy_n(p.border, 4, border);
  rank = p.rank;
  format = static_cast<TexelFormat>(p.format);
  channels = p.channels;
  for (size_t i = 0; i < 3; ++i) mode[i] = static_cast<AddressMode>(p.mode[i]);
  for (size_t i = 0; i < std::size(kFlags); ++i) this->*kFlags[i] = p.flags >> i & 1;
  return fault().empty();
}

uint32_t taps_at(const Image& image, const float* coordinates, Tap out[kMostTaps]) {
  int64_t at[3] = {};
  if (!image.linear) {
    for (uint32_t axis = 0; axis < image.rank; ++axis)
      at[axis] = static_cast<int64_t>(std::floor(in_texels(image, axis, coordinates[axis])));
    out[0] = tap(image, at, 1);
    return 1;
  }
  int64_t low[3] = {}, fraction[3] = {};
  for (uint32_t axis = 0; axis < image.rank; ++axis) {
    const double x = in_texels(image, axis, coordinates[axis]) - 0.5;
    const auto fixed = static_cast<int64_t>(std::floor(x * kFractions + 0.5));
    low[axis] = fixed >> 8;
    fraction[axis] = fixed & (kFractions - 1);
  }
  uint32_t taps = 0;
  for (uint32_t corner = 0; corner < 1u << image.rank; ++corner) {
    int64_t parts = 1;
    float weight = 1;
    for (uint32_t axis = 0; axis < image.rank; ++axis) {
      const bool next = corner >> axis & 1;
      parts *= next ? fraction[axis] : kFractions - fraction[axis];
      at[axis] = low[axis] + next;
      weight /= static_cast<float>(kFractions);
    }
    if (parts) out[taps++] = tap(image, at, weight * static_cast<float>(parts));
  }
  return taps;
}

Tap tap_at(const Image& image, const int32_t* coordinates) {
  int64_t at[3] = {};
  bool inside = true;
  for (uint32_t axis = 0; axis < image.rank; ++axis) {
    at[axis] = coordinates[axis];
    inside &= at[axis] >= 0 && at[axis] < image.dims[axis];
  }
  Tap t = tap(image, at, 1);
  if (image.is_memory) t.inside = inside;
  return t;
}

void taps_of_gather(const Image& image, const float* coordinates, Tap out[4]) {
  constexpr int64_t kCorners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  for (uint32_t i = 0; i < 4; ++i) {
    int64_t at[3] = {};
    for (uint32_t axis = 0; axis < 2; ++axis)
      at[axis] = static_cast<int64_t>(std::floor(in_texels(image, axis, coordinates[axis]) - 0.5)) + kCorners[i][axis];
    out[i] = tap(image, at, 1);
  }
}

void read_texel(const Image& image, const std::byte* texel, uint32_t out[4]) {
  const uint32_t bytes = bytes_of(image.format);
  std::fill_n(out, 4, 0u);
  for (uint32_t c = 0; c < image.channels; ++c) {
    const std::byte* const from = texel + c * bytes;
    switch (image.format) {
      case TexelFormat::kU8: out[c] = channel<uint8_t>(image, from); break;
      case TexelFormat::kS8: out[c] = channel<int8_t>(image, from); break;
      case TexelFormat::kU16: out[c] = channel<uint16_t>(image, from); break;
      case TexelFormat::kS16: out[c] = channel<int16_t>(image, from); break;
      case TexelFormat::kF16: {
        uint16_t half;
        std::memcpy(&half, from, sizeof half);
        out[c] = as_bits(from_half(half));
        break;
      }
      case TexelFormat::kU32:
      case TexelFormat::kS32:
      case TexelFormat::kF32: std::memcpy(&out[c], from, 4); break;
    }
  }
}

}  // namespace roofgen::sim
