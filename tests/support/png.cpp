#include "tests/support/png.h"

#include <zlib.h>

#include <cstdlib>
#include <vector>

namespace roofgen::test {

namespace {

using Bytes = std::vector<unsigned char>;

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

int paeth(int left, int up, int corner) {
  const int guess = left + up - corner;
  const int a = std::abs(guess - left), b = std::abs(guess - up), c = std::abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/// Undoes the filter of one row in place; `before` is the row above, zeros for the first.
bool unfilter(int filter, Bytes& row, const Bytes& before, size_t pixel) {
  for (size_t i = 0; i < row.size(); ++i) {
    const int left = i >= pixel ? row[i - pixel] : 0, up = before[i], corner = i >= pixel ? before[i - pixel] : 0;
    const int added = filter == 0   ? 0
                      : filter == 1 ? left
                      : filter == 2 ? up
                      : filter == 3 ? (left + up) / 2
                      : filter == 4 ? paeth(left, up, corner)
                                    : -1;
    if (added < 0) return false;
    row[i] = static_cast<unsigned char>(row[i] + added);
  }
  return true;
}

}  // namespace

std::optional<Image> read_png(const std::string& bytes) {
  if (bytes.size() < 33 || bytes.compare(0, 8, "\x89PNG\r\n\x1a\n") != 0) return std::nullopt;
  Image image{static_cast<int>(big_endian(bytes, 16)), static_cast<int>(big_endian(bytes, 20)), {}};
  const int depth = bytes[24], type = bytes[25], interlaced = bytes[28];
  if (depth != 8 || (type != 2 && type != 6) || interlaced != 0) return std::nullopt;
  const size_t pixel = type == 2 ? 3 : 4, stride = image.width * pixel;
  std::string packed;
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = big_endian(bytes, at);
    if (length > bytes.size() - at - 12) return std::nullopt;
    if (bytes.compare(at + 4, 4, "IDAT") == 0) packed.append(bytes, at + 8, length);
    at += length + 12;
  }
  Bytes raw((stride + 1) * image.height);
  uLongf size = raw.size();
  if (uncompress(raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK ||
      size != raw.size())
    return std::nullopt;
  Bytes before(stride, 0);
  for (int y = 0; y < image.height; ++y) {
    const auto begin = raw.begin() + static_cast<long>(y * (stride + 1));
    Bytes row(begin + 1, begin + 1 + static_cast<long>(stride));
    if (!unfilter(*begin, row, before, pixel)) return std::nullopt;
    for (size_t i = 0; i < stride; i += pixel) image.colours.insert(row[i] << 16 | row[i + 1] << 8 | row[i + 2]);
    before = std::move(row);
  }
  return image;
}

}  // namespace roofgen::test
