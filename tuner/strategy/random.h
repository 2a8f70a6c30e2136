// Random numbers of the search: the same seed gives the same search with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mix.h"

namespace roofgen {

/// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t bits() {
    const uint64_t out = mix(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return out;
  }
  /// 0 to n - 1. Its bias is at most n / 2^64.
  size_t below(size_t n) { return bits() % n; }
  /// In [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace roofgen
