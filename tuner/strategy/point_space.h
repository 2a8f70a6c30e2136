// The points of a search space: rows of value indices, found by their values and by their neighbourhood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roofgen {

/// A tunable parameter. Its values keep the order of the space's source.
struct Axis {
  std::string name;
  std::vector<std::string> labels;   ///< one per value
  std::vector<double> numbers = {};  ///< the values; empty unless all are numbers
  size_t size() const { return labels.size(); }
};

/// Legal points only. A row holds for each axis the index of its value. No two rows are equal.
class PointSpace {
 public:
  /// `rows`: one after the other, axes.size() indices each.
  PointSpace(std::vector<Axis> axes, std::vector<uint16_t> rows);

  size_t size() const { return size_; }
  const std::vector<Axis>& axes() const { return axes_; }
  std::span<const uint16_t> row(size_t point) const { return {rows_.data() + point * axes_.size(), axes_.size()}; }
  /// The point with these indices, if it is legal.
  std::optional<size_t> find(std::span<const uint16_t> row) const;
  /// Every point that differs from `point` in one axis, in the order of axes and values.
  std::vector<size_t> neighbours(size_t point) const;

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  static uint64_t hash(std::span<const uint16_t> row);

  std::vector<Axis> axes_;
  std::vector<uint16_t> rows_;
  size_t size_ = 0;
  std::vector<uint32_t> slots_;  ///< open addressing, at most half full
};

}  // namespace roofgen
