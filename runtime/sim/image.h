// Texture and surface objects. An object is the address of a description of its image in device memory; the driver's
// own layout is not documented, and this one has a mark that distinguishes it from other data.
//
// Fetches are as the CUDA C++ Programming Guide has them, "Texture Fetching": coordinates of linear filtering have
// eight bits of fraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace roofgen::sim {

inline constexpr uint32_t kImageBytes = 128;  ///< of a description
inline constexpr uint32_t kMostTaps = 8;      ///< texels of one fetch

/// The type of a channel, with the numbers of CUarray_format.
enum class TexelFormat : uint8_t { kU8 = 1, kU16 = 2, kU32 = 3, kS8 = 8, kS16 = 9, kS32 = 10, kF16 = 16, kF32 = 32 };
/// Bytes of a channel; 0: no such format.
uint32_t bytes_of(TexelFormat format);
constexpr bool is_float(TexelFormat f) { return f == TexelFormat::kF16 || f == TexelFormat::kF32; }

/// What a coordinate outside the image means, with the numbers of CUaddress_mode.
enum class AddressMode : uint8_t { kWrap = 0, kClamp = 1, kMirror = 2, kBorder = 3 };

/// An image in device memory, and how a texture object reads it.
struct Image {
  uint64_t address = 0;
  uint32_t rank = 0;              ///< 1 to 3
  uint32_t dims[3] = {1, 1, 1};   ///< texels: width, height, depth
  uint32_t layers = 0;            ///< 0: the image has none
  uint64_t pitch = 0, slice = 0;  ///< bytes between rows, and between slices or layers
  TexelFormat format = TexelFormat::kF32;
  uint32_t channels = 1;          ///< 1, 2 or 4
  bool is_surface = false;        ///< for surface instructions; the rest is of textures
  bool is_memory = false;         ///< one dimension of plain memory: texels by number, zeros outside
  bool linear = false;            ///< filtering
  bool unit_coordinates = false;  ///< coordinates from 0 to 1
  bool unit_values = false;       ///< integers of 8 and 16 bits are read as floats from -1 or 0 to 1
  AddressMode mode[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  float border[4] = {};  ///< of AddressMode::kBorder

  uint32_t texel_bytes() const { return bytes_of(format) * channels; }
  bool is_read_as_float() const { return unit_values || is_float(format); }
  /// Why no object can be like that, by the rules of cuTexObjectCreate and cuSurfObjectCreate; "": it can.
  std::string fault() const;
  void encode(std::byte* out) const;
  /// False: the bytes are no description.
  bool decode(const std::byte* in);
  uint64_t address_of(const uint32_t at[3], uint32_t layer) const {
    return address + uint64_t{at[0]} * texel_bytes() + at[1] * pitch + (uint64_t{at[2]} + layer) * slice;
  }
};

/// A texel that a fetch reads, and its part of the result.
struct Tap {
  uint32_t at[3];
  float weight;
  bool inside;  ///< false: the border's colour instead
};
/// The taps of a fetch at floating-point coordinates; taps without weight are left out.
uint32_t taps_at(const Image& image, const float* coordinates, Tap out[kMostTaps]);
/// The texel of a fetch at integer coordinates, which are not scaled and not filtered.
Tap tap_at(const Image& image, const int32_t* coordinates);
/// The four texels of which a gather reads one channel, counter-clockwise from the lower left.
void taps_of_gather(const Image& image, const float* coordinates, Tap out[4]);

/// The channels of a texel as a fetch has them: floats, or integers extended to 32 bits. Channels that the image does
/// not have are 0.
void read_texel(const Image& image, const std::byte* texel, uint32_t out[4]);

}  // namespace roofgen::sim
