// The tensor memory of a CTA: its cells, and what is allocated.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/sim/tcgen05.h"

namespace roofgen::sim {

class TensorMemory {
 public:
  struct Allocation {
    uint32_t first, columns;
    uint32_t pc, warp;  ///< that allocated it
  };

  void begin() {
    allocations_.clear();
    relinquished_.reset();
    last_columns_ = kTensorColumns;
    group_ = 0;
  }
  /// The 128 lanes of a column.
  uint32_t* column(uint32_t c) { return cells_.data() + size_t{c} * kTensorLanes; }
  uint32_t& at(uint32_t lane, uint32_t c) { return cells_[size_t{c} * kTensorLanes + lane]; }
  const std::vector<Allocation>& allocations() const { return allocations_; }
  /// Nothing: there is no room.
  std::optional<uint32_t> allocate(uint32_t columns, uint32_t pc, uint32_t warp) {
    for (uint32_t first = 0; first + columns <= kTensorColumns; first += kTensorUnit) {
      if (overlaps(first, columns)) continue;
      allocations_.push_back({first, columns, pc, warp});
      std::fill_n(column(first), size_t{columns} * kTensorLanes, ~0u);  // old values would depend on the CTA before
      return first;
    }
    return std::nullopt;
  }
  bool give_back(uint32_t first, uint32_t columns) {
    return std::erase_if(allocations_, [&](const Allocation& a) { return a.first == first && a.columns == columns; });
  }
  bool is_allocated(uint32_t first, uint32_t columns) const {
    for (uint32_t c = first / kTensorUnit; c * kTensorUnit < first + columns; ++c)
      if (!overlaps(c * kTensorUnit, 1)) return false;
    return first + columns <= kTensorColumns;
  }

  std::optional<uint32_t> relinquished_;  ///< the instruction that gave up the right to allocate
  uint32_t last_columns_ = kTensorColumns;
  uint32_t group_ = 0;  ///< CTAs of the groups that the CTA's instructions name; 0: none yet

 private:
  bool overlaps(uint32_t first, uint32_t columns) const {
    for (const Allocation& a : allocations_)
      if (first < a.first + a.columns && a.first < first + columns) return true;
    return false;
  }
  std::vector<uint32_t> cells_ = std::vector<uint32_t>(size_t{kTensorColumns} * kTensorLanes);
  std::vector<Allocation> allocations_;
};

}  // namespace roofgen::sim
