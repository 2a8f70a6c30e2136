// Small search spaces with known times.
#pragma once

#include <cmath>
#include <set>
#include <string>

#include "tuner/replay/recorded.h"

namespace roofgen {

inline Axis number_axis(const std::string& name, const std::vector<double>& numbers) {
  Axis out{name, {}, numbers};
  for (const double number : numbers) out.labels.push_back(std::to_string(number));
  return out;
}

/// Four axes, 8 * 8 * 6 * 3 combinations of which those with x y <= 4096 are legal. The time has one minimum, at
/// x = 32, y = 8, z = 3, method b; points with x y > 2048 fail.
inline RecordedSpace tile_space() {
  RecordedSpace out;
  std::vector<Axis> axes = {number_axis("x", {1, 2, 4, 8, 16, 32, 64, 128}),
                            number_axis("y", {1, 2, 4, 8, 16, 32, 64, 128}), number_axis("z", {1, 2, 3, 4, 5, 6}),
                            Axis{"method", {"a", "b", "c"}, {}}};
  std::vector<uint16_t> rows;
  for (uint16_t x = 0; x < 8; ++x)
    for (uint16_t y = 0; y < 8; ++y)
      for (uint16_t z = 0; z < 6; ++z)
        for (uint16_t m = 0; m < 3; ++m) {
          const double area = axes[0].numbers[x] * axes[1].numbers[y];
          if (area > 4096) continue;
          rows.insert(rows.end(), {x, y, z, m});
          const double log = std::pow(x - 5, 2) / 8.0 + std::pow(y - 3, 2) / 6.0 + std::fabs(z - 2) / 5.0 +
                             (m == 1 ? 0 : 0.4) + 0.05 * std::fabs(x + y - 8);
          out.results.push_back({area > 2048, 1e-3 * std::exp(log)});
          if (out.results.back().failed) out.results.back().seconds = 0;
          out.failed += out.results.back().failed;
        }
  out.best = 1e-3;
  out.space.points = PointSpace(std::move(axes), std::move(rows));
  return out;
}

}  // namespace roofgen
