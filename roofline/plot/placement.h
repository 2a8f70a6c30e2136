// Places texts so that they do not overlap. A label is a row of discs along its base line, which treats rotated and
// horizontal labels alike. templates/plots/placement.js does the same in an HTML page, whose size is known only when
// shown. Pixels, y downwards.
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

/// A candidate position for a text: the centre of its box, rotated by `angle` (radians, clockwise).
struct Spot {
  double x = 0, y = 0, angle = 0;
  double width = 0, height = 0;
  double penalty = 0;  ///< in units of one crossed line
  size_t variant = 0;  ///< for the caller
};

class Placement {
 public:
  explicit Placement(Box area) : area_(area) {}
  void take(Disc disc) { taken_.push_back(disc); }  ///< an area that no label may touch
  /// A line that labels avoid; `weight` is the cost of crossing it.
  void add_line(double x0, double y0, double x1, double y1, double weight = 1) {
    lines_.push_back({x0, y0, x1, y1, weight});
  }
  /// Takes the first of the cheapest spots; nullopt when none fits.
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
