// Random numbers that are pure functions of a counter, for the contents of inputs.
#pragma once

#include <array>
#include <cstdint>

#include "base/mix.h"

namespace roofgen {

inline constexpr int kQuantileBits = 12;
inline constexpr int kQuantiles = 1 << kQuantileBits;

/// Quantiles of N(0,1) in equal steps of probability: a uniform index is a normal number.
const std::array<double, kQuantiles>& normal_quantiles();

}  // namespace roofgen
