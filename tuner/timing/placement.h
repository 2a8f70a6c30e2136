// The end of a grid whose CTAs do not do the same work: causal attention, ragged batches, empty tiles.
#pragma once

#include <cstdint>
#include <functional>

namespace roofgen::timing {

struct Placement {
  uint64_t ctas = 0;
  int sms = 1, resident = 1;  ///< resident: CTAs of an SM at a time
  /// The speed of a CTA that has its SM alone over that of all resident ones together: 1 / resident (each CTA waits for
  /// its own results only) to 1 (one CTA fills the SM).
  double alone = 1;
  std::function<double(uint64_t cta)> work;
};

/// The time of the launch over that of a launch whose CTAs share the same work evenly. A CTA starts, in the order of
/// the grid, where the first place is free; CTAs of an SM progress evenly. 1 for grids of more CTAs than kMostPlaced,
/// whose end is short.
double imbalance(const Placement& launch);
inline constexpr uint64_t kMostPlaced = 100'000;

}  // namespace roofgen::timing
