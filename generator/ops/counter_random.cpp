#include "generator/ops/counter_random.h"

#include <cmath>
#include <numbers>

namespace roofgen {

// Newton's method on the distribution function, from the centre outwards.
const std::array<double, kQuantiles>& normal_quantiles() {
  static const std::array<double, kQuantiles> quantiles = [] {
    std::array<double, kQuantiles> out;
    double x = 0;
    for (int i = kQuantiles / 2; i < kQuantiles; ++i) {
      const double upper_tail = 1 - (i + 0.5) / kQuantiles;
      for (int step = 0; step < 8; ++step) {
        const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
        x += (0.5 * std::erfc(x / std::numbers::sqrt2) - upper_tail) / density;
      }
      out[i] = x;
      out[kQuantiles - 1 - i] = -x;
    }
    return out;
  }();
  return quantiles;
}

}  // namespace roofgen
