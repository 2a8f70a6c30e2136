// Checks that every op makes of a problem, and their limits.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "roofgen/result.h"

namespace roofgen {

/// 1 TiB: larger than the memory of any GPU, and products of sizes and strides still fit int64.
inline constexpr double kMaxTensorBytes = 1099511627776.0;

inline Error usage(std::string message) { return Error{Exit::kUsage, std::move(message)}; }

inline Result<void> in_range(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) return usage(fmt::format("{} is {}; {} to {} was expected", name, value, low, high));
  return {};
}

}  // namespace roofgen
