// Images: which texels a fetch reads, with which weights, and what their bytes mean. The oracle is the text of the CUDA
// C++ Programming Guide, "Texture Fetching", written once more on whole coordinates.
#include "runtime/sim/image.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace roofgen::sim_test::image_test {
namespace {

using namespace sim;

Image image_of(std::vector<uint32_t> dims, AddressMode mode, bool linear, bool unit) {
  Image image;
  image.rank = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), image.dims);
  std::fill_n(image.mode, 3, mode);
  image.linear = linear;
  image.unit_coordinates = unit;
  return image;
}

/// The value of a texel along one axis, in an image whose texel i has the value i; `border` outside.
constexpr double kBorder = -1000;
double texel(AddressMode mode, int64_t size, int64_t at) {
  if (at >= 0 && at < size) return static_cast<double>(at);
  switch (mode) {
    case AddressMode::kWrap: return static_cast<double>((at % size + size) % size);
    case AddressMode::kClamp: return static_cast<double>(at < 0 ? 0 : size - 1);
    case AddressMode::kMirror: {
      int64_t i = at;
      while (i < 0 || i >= size) i = i < 0 ? -1 - i : 2 * size - 1 - i;
      return static_cast<double>(i);
    }
    case AddressMode::kBorder: return kBorder;
  }
  return 0;
}
/// What a fetch gives along one axis.
double expected(AddressMode mode, int64_t size, bool linear, double x) {
  if (!linear) return texel(mode, size, static_cast<int64_t>(std::floor(x)));
  const double at = std::floor((x - 0.5) * 256 + 0.5) / 256, low = std::floor(at), part = at - low;
  const auto i = static_cast<int64_t>(low);
  return (part < 1 ? (1 - part) * texel(mode, size, i) : 0) + (part > 0 ? part * texel(mode, size, i + 1) : 0);
}
double fetched(const Image& image, float x) {
  Tap taps[kMostTaps];
  double sum = 0;
  const uint32_t n = taps_at(image, &x, taps);
  for (uint32_t i = 0; i < n; ++i)
    sum += taps[i].weight * (taps[i].inside ? static_cast<double>(taps[i].at[0]) : kBorder);
  return sum;
}

TEST(Images, FetchWhatTheGuideSays) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    const auto size = 1 + static_cast<int64_t>(random() % 40);
    const bool linear = random() % 2, unit = random() % 2;
    auto mode = static_cast<AddressMode>(random() % 4);
    const Image image = image_of({static_cast<uint32_t>(size)}, mode, linear, unit);
    if (!unit && (mode == AddressMode::kWrap || mode == AddressMode::kMirror)) mode = AddressMode::kClamp;
    // In sixteenths of a texel, off the border between two texels where mirroring chooses a side.
    const int64_t step = static_cast<int64_t>(random() % 4000) - 2000;
    const float x = (static_cast<float>(step) + 0.5f) / 16;
    const float given = unit ? x / static_cast<float>(size) : x;
    const double texels = unit ? static_cast<double>(given) * static_cast<double>(size) : x;
    // A division by the size may move a coordinate by a rounding, over the border of two 256ths.
    const double tolerance = unit && linear ? 1.01 / 256 * (mode == AddressMode::kBorder ? 1100 : 45) : 1e-6;
    EXPECT_NEAR(fetched(image, given), expected(mode, size, linear, texels), tolerance)
        << "size " << size << " x " << texels << " mode " << static_cast<int>(mode) << " linear " << linear;
  }
}

TEST(Images, WeightsOfAllTapsAreOne) {
  std::mt19937 random(2);
  for (const uint32_t rank : {1u, 2u, 3u}) {
    const Image image = image_of(std::vector<uint32_t>(rank, 7), AddressMode::kClamp, true, false);
    for (int trial = 0; trial < 1000; ++trial) {
      float at[3];
      for (float& x : at) x = static_cast<float>(random() % 4096) / 512;
      Tap taps[kMostTaps];
      float sum = 0;
      const uint32_t n = taps_at(image, at, taps);
      for (uint32_t i = 0; i < n; ++i) sum += taps[i].weight;
      EXPECT_EQ(sum, 1);  // parts of 256: exact
      EXPECT_LE(n, 1u << rank);
    }
    // In the middle of a texel there is one tap.
    const float middle[3] = {2.5f, 3.5f, 4.5f};
    Tap taps[kMostTaps];
    EXPECT_EQ(taps_at(image, middle, taps), 1u);
  }
}

TEST(Images, CoordinatesMayBeAnything) {
  const float infinity = std::numeric_limits<float>::infinity(), huge = std::numeric_limits<float>::max();
  for (const AddressMode mode : {AddressMode::kWrap, AddressMode::kClamp, AddressMode::kMirror, AddressMode::kBorder})
    for (const bool linear : {false, true})
      for (const bool unit : {false, true})
        for (const float x : {infinity, -infinity, huge, -huge, std::nanf(""), 1e10f, -1e-30f}) {
          const Image image = image_of({5}, mode, linear, unit);
          Tap taps[kMostTaps];
          const uint32_t n = taps_at(image, &x, taps);
          for (uint32_t i = 0; i < n; ++i) EXPECT_LT(taps[i].at[0], 5u);
        }
}

TEST(Images, NumbersOutsideOfPlainMemoryAreZeros) {
  Image image = image_of({5}, AddressMode::kClamp, false, false);
  const int32_t outside = 5, inside = 4, before = -1;
  EXPECT_EQ(tap_at(image, &outside).at[0], 4u);
  image.is_memory = true;
  EXPECT_FALSE(tap_at(image, &outside).inside);
  EXPECT_FALSE(tap_at(image, &before).inside);
  EXPECT_TRUE(tap_at(image, &inside).inside);
}

template <class T>
std::array<uint32_t, 4> read(TexelFormat format, std::vector<T> values, bool unit_values) {
  Image image;
  image.format = format;
  image.channels = static_cast<uint32_t>(values.size());
  image.unit_values = unit_values;
  std::array<uint32_t, 4> out;
  read_texel(image, reinterpret_cast<const std::byte*>(values.data()), out.data());
  return out;
}
float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Images, TexelsOfEachFormat) {
  EXPECT_EQ(read<uint8_t>(TexelFormat::kU8, {200, 1}, false), (std::array<uint32_t, 4>{200, 1, 0, 0}));
  EXPECT_EQ(read<int8_t>(TexelFormat::kS8, {-3}, false)[0], static_cast<uint32_t>(-3));
  EXPECT_EQ(read<uint16_t>(TexelFormat::kU16, {1, 2, 3, 65535}, false)[3], 65535u);
  EXPECT_EQ(read<int16_t>(TexelFormat::kS16, {-30000}, false)[0], static_cast<uint32_t>(-30000));
  EXPECT_EQ(read<int32_t>(TexelFormat::kS32, {-5}, false)[0], static_cast<uint32_t>(-5));
  EXPECT_EQ(as_float(read<float>(TexelFormat::kF32, {1.5f, -2}, false)[1]), -2);
  EXPECT_EQ(as_float(read<uint16_t>(TexelFormat::kF16, {0x3e00}, false)[0]), 1.5f);
  EXPECT_EQ(as_float(read<uint8_t>(TexelFormat::kU8, {255}, true)[0]), 1);
  EXPECT_EQ(as_float(read<uint8_t>(TexelFormat::kU8, {51}, true)[0]), 0.2f);
  // Both ends of signed integers are -1.
  EXPECT_EQ(as_float(read<int8_t>(TexelFormat::kS8, {-128, -127}, true)[0]), -1);
  EXPECT_EQ(as_float(read<int8_t>(TexelFormat::kS8, {-128, -127}, true)[1]), -1);
  EXPECT_EQ(as_float(read<uint16_t>(TexelFormat::kU16, {65535}, true)[0]), 1);
}

TEST(Images, DescriptionsAreReadBackAndDataIsNone) {
  Image image = image_of({64, 32}, AddressMode::kMirror, true, true);
  image.address = 1 << 20;
  image.pitch = 256;
  image.slice = 256 * 32;
  std::byte bytes[kImageBytes];
  image.encode(bytes);
  Image back;
  ASSERT_TRUE(back.decode(bytes));
  EXPECT_EQ(back.address, image.address);
  EXPECT_EQ(back.dims[1], 32u);
  EXPECT_EQ(back.mode[1], AddressMode::kMirror);
  EXPECT_TRUE(back.linear);
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(back.decode(bytes));
}

TEST(Images, FaultsAreNamed) {
  Image image = image_of({64}, AddressMode::kClamp, false, false);
  EXPECT_EQ(image.fault(), "");
  image.format = TexelFormat::kU8;
  image.linear = true;
  EXPECT_EQ(image.fault(), "linear filtering needs values that are read as floats");
  image.unit_values = true;
  EXPECT_EQ(image.fault(), "");
  image.format = TexelFormat::kU32;
  EXPECT_EQ(image.fault(), "only integers of 8 and 16 bits are read as floats from 0 to 1");
  image = image_of({64}, AddressMode::kClamp, false, false);
  image.channels = 3;
  EXPECT_EQ(image.fault(), "3 channels; 1, 2 or 4 exist");
  image.channels = 4;
  image.pitch = 24;
  EXPECT_EQ(image.fault(), "rows are not aligned to its 16 bytes");
}

}  // namespace
}  // namespace roofgen::sim_test::image_test
