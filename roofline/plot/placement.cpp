#include "roofline/plot/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen::plot {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Disc> discs_of(const Spot& spot) {
  const double radius = spot.height / 2, reach = std::max(0.0, spot.width / 2 - radius);
  const int count = std::max(2, static_cast<int>(std::ceil(2 * reach / radius)) + 1);
  std::vector<Disc> discs;
  for (int i = 0; i < count; ++i) {
    const double t = -reach + 2 * reach * i / (count - 1);
    discs.push_back({spot.x + t * std::cos(spot.angle), spot.y + t * std::sin(spot.angle), radius});
  }
  return discs;
}

}  // namespace

double Placement::cost(const std::vector<Disc>& discs) const {
  for (const Disc& d : discs) {
    if (d.x - d.radius < area_.left - 1 || d.x + d.radius > area_.right + 1 || d.y - d.radius < area_.top - 1 ||
        d.y + d.radius > area_.bottom + 1)
      return kInfinity;
    for (const Disc& other : taken_)
      if (std::hypot(d.x - other.x, d.y - other.y) < d.radius + other.radius) return kInfinity;
  }
  double sum = 0;
  for (const Line& line : lines_) {
    const double dx = line.x1 - line.x0, dy = line.y1 - line.y0, length = dx * dx + dy * dy;
    const bool crossed = std::any_of(discs.begin(), discs.end(), [&](const Disc& d) {
      const double t = length > 0 ? std::clamp(((d.x - line.x0) * dx + (d.y - line.y0) * dy) / length, 0.0, 1.0) : 0;
      return std::hypot(d.x - line.x0 - t * dx, d.y - line.y0 - t * dy) < d.radius;
    });
    if (crossed) sum += line.weight;
  }
  return sum;
}

std::optional<Spot> Placement::place(const std::vector<Spot>& spots) {
  const Spot* best = nullptr;
  double least = kInfinity;
  for (const Spot& spot : spots) {
    const double total = cost(discs_of(spot)) + spot.penalty;
    if (total < least) {
      best = &spot;
      least = total;
    }
    if (least == 0) break;
  }
  if (!best) return std::nullopt;
  for (const Disc& disc : discs_of(*best)) take(disc);
  return *best;
}

}  // namespace roofgen::plot
