// Reads enough of PNG to check that an image is not empty.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace roofgen::test {

struct Image {
  int width = 0, height = 0;
  std::set<uint32_t> colours;  ///< distinct 0xRRGGBB
};

/// Reads a non-interlaced 8-bit RGB or RGBA image; nullopt for anything else.
std::optional<Image> read_png(const std::string& bytes);

}  // namespace roofgen::test
