// Where a text can stand without touching another: a label is a row of discs along its base line, so
// that a rotated one is as easy as a level one. templates/plots/placement.js does the same in a page,
// where the size is only known later. Pixels, y downwards.
#pragma once

#include <optional>
#include <vector>

namespace roofgen::plot {

struct Disc {
  double x = 0, y = 0, radius = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// One place for a text: the centre of its box, turned by `angle` (radians, clockwise).
struct Spot {
  double x = 0, y = 0, angle = 0;
  double width = 0, height = 0;
  double penalty = 0;  ///< in units of a crossed line
  size_t variant = 0;  ///< the caller's
};

class Placement {
 public:
  explicit Placement(Box area) : area_(area) {}
  void take(Disc disc) { taken_.push_back(disc); }  ///< nothing may touch it
  /// A label should not lie on it; `weight` says how much it matters.
  void add_line(double x0, double y0, double x1, double y1, double weight = 1) {
    lines_.push_back({x0, y0, x1, y1, weight});
  }
  /// The first of the cheapest spots becomes taken; nullopt when none fits.
  std::optional<Spot> place(const std::vector<Spot>& spots);

 private:
  struct Line {
    double x0, y0, x1, y1, weight;
  };
  double cost(const std::vector<Disc>& discs) const;

  Box area_;
  std::vector<Disc> taken_;
  std::vector<Line> lines_;
};

}  // namespace roofgen::plot
