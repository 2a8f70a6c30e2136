#include "generator/ops/rows_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "generator/ops/counter_random.h"
#include "generator/ops/elements.h"

namespace roofgen::rows {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The column of the largest element of a row among the first kOutlierRows of 64: the first eight columns, the last
/// one, or one of a quarter of the columns. Eight rows of a quarter differ in the place among eight elements in memory,
/// because threads load as many at a time.
int64_t outlier_of(int64_t row, int64_t cols) {
  constexpr std::array<int64_t, 6> kQuarters{2, 3, 0, 0, 0, 1};
  const int64_t part = row % kRowClasses, section = part / 8;
  if (section == 2) return std::min(part % 8, cols - 1);
  if (section == 3) return cols - 1;
  const auto random = static_cast<int64_t>(mix(static_cast<uint64_t>(row)) % static_cast<uint64_t>((cols + 3) / 4));
  const int64_t col = cols * kQuarters[static_cast<size_t>(section)] / 4 + random;
  return std::clamp<int64_t>(col - (row * cols + col - part) % 8, 0, cols - 1);
}

/// The value of a column in a row of this class, from a number of N(0,1). `single`: the one column that differs.
double of_class(int64_t row_class, double normal, int64_t col, int64_t single, const SourceContents& c) {
  // An element that is larger by more than e^x can represent. Of softmax, a 0 in place of a hidden element would be
  // too.
  const bool softmax = std::isinf(c.hidden);
  if (row_class < kOutlierRows) return (col == single ? 200 : normal) - (softmax ? 300 : 0);
  const int64_t half = c.cols / 2, part = col * 8 / c.cols;
  // Steps of 40, 15, 5 and 1, as in the growing scores of attention.
  constexpr std::array<double, 8> kLevels{-64, -24, -9, -4, -3, -2, -1, 0};
  switch (row_class - kOutlierRows) {
    case 1: return softmax ? -30000 : -1000;
    case 2: return 1000;
    case 3: return 1e-6 * normal;
    case 4: return col == single ? kInfinity : normal;
    case 5: return col == single ? std::numeric_limits<double>::quiet_NaN() : normal;
    case 6: return col == single ? normal : c.hidden;
    case 7: return col / 32 % 2 == 0 ? c.hidden : normal;
    case 8: return col >= half ? c.hidden : normal;
    case 9: return col == single ? -1e4 : normal;
    case 10: return kLevels[static_cast<size_t>(7 - part)] + normal;
    case 11: return 1e4 * normal;
    case 12: return c.hidden;
    case 13: return 1000 + 3 * normal;
    case 14: return col < half ? c.hidden : col == single ? 1e4 : normal;
    case 15: return kLevels[static_cast<size_t>(part)] + normal;
    default: return normal;
  }
}

}  // namespace

void SourceContents::values(int64_t row, int64_t first, std::span<double> out) const {
  const bool extreme = pattern == InputPattern::kExtremeRows;
  TensorContents{extreme ? InputPattern::kNormal : pattern, name, dtype}.values(
      static_cast<uint64_t>(row * cols + first), out);
  if (!extreme) return;
  const int64_t row_class = row % kRowClasses;
  const int64_t single = row_class < kOutlierRows
                             ? outlier_of(row, cols)
                             : static_cast<int64_t>(mix(static_cast<uint64_t>(row)) % static_cast<uint64_t>(cols));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = round_to_dtype(of_class(row_class, out[i], first + static_cast<int64_t>(i), single, *this), dtype);
}

void SourceContents::fill(uint64_t byte_offset, std::span<std::byte> out) const {
  if (pattern != InputPattern::kExtremeRows) return TensorContents{pattern, name, dtype}.fill(byte_offset, out);
  const auto size = static_cast<uint64_t>(size_of(dtype));
  std::vector<double> row_values;
  std::vector<std::byte> bytes;
  while (!out.empty()) {
    const auto element = static_cast<int64_t>(byte_offset / size), skip = static_cast<int64_t>(byte_offset % size);
    const int64_t row = element / cols, first = element % cols;
    const int64_t wanted = (skip + static_cast<int64_t>(out.size() + size - 1)) / static_cast<int64_t>(size);
    row_values.resize(static_cast<size_t>(std::min(cols - first, wanted)));
    values(row, first, row_values);
    bytes.resize(row_values.size() * size);
    for (size_t i = 0; i < row_values.size(); ++i) store_element(bytes.data(), i, dtype, row_values[i]);
    const size_t count = std::min(out.size(), bytes.size() - static_cast<size_t>(skip));
    std::copy_n(bytes.begin() + skip, count, out.begin());
    out = out.subspan(count);
    byte_offset += count;
  }
}

}  // namespace roofgen::rows
