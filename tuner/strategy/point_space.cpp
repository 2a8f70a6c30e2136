#include "tuner/strategy/point_space.h"

#include <algorithm>
#include <bit>

#include "base/mix.h"

namespace roofgen {

PointSpace::PointSpace(std::vector<Axis> axes, std::vector<uint16_t> rows)
    : axes_(std::move(axes)), rows_(std::move(rows)), size_(axes_.empty() ? 0 : rows_.size() / axes_.size()) {
  slots_.assign(std::bit_ceil(2 * size_ + 1), kFree);
  for (size_t point = 0; point < size_; ++point) {
    size_t at = hash(row(point)) & (slots_.size() - 1);
    while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<uint32_t>(point);
  }
}

uint64_t PointSpace::hash(std::span<const uint16_t> row) {
  uint64_t h = 0;
  for (const uint16_t index : row) h = mix(h + index + 1);
  return h;
}

std::optional<size_t> PointSpace::find(std::span<const uint16_t> wanted) const {
  for (size_t at = hash(wanted) & (slots_.size() - 1); slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1))
    if (std::ranges::equal(row(slots_[at]), wanted)) return slots_[at];
  return std::nullopt;
}

std::vector<size_t> PointSpace::neighbours(size_t point) const {
  std::vector<size_t> out;
  std::vector<uint16_t> changed(row(point).begin(), row(point).end());
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const uint16_t own = changed[axis];
    for (size_t value = 0; value < axes_[axis].size(); ++value) {
      changed[axis] = static_cast<uint16_t>(value);
      if (value == own) continue;
      if (const std::optional<size_t> found = find(changed)) out.push_back(*found);
    }
    changed[axis] = own;
  }
  return out;
}

}  // namespace roofgen
