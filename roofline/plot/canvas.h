// Positions of all parts of a roofline on a canvas of known size: marks, arrows and labels that do not overlap, and the
// points' full names in a table beside the plot and, when there are many, below the plot.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roofline/plot/placement.h"
#include "roofline/plot/scene.h"

namespace roofgen::plot {

using Corners = std::vector<std::pair<double, double>>;

/// Pixels from the top left corner. Text sizes are in points (1.34 pixels each).
struct Canvas {
  double width = 0, height = 0;
  Box plot;  ///< inside the axes
  struct Shape {
    Corners corners;
    std::string colour, border;
  };
  struct Segment {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    enum class Kind { kHeadroom, kLevels, kChange } kind = Kind::kLevels;
    std::string colour;
  };
  struct Label {
    std::string text;
    double x = 0, y = 0, size = 0;
    std::string colour, align;
    double angle = 0;  ///< degrees, counter-clockwise
  };
  std::vector<Shape> shapes;
  std::vector<Segment> segments;
  std::vector<Label> labels;
};

Canvas lay_out(const Roofline& roofline, const Scene& scene);

/// A slope has its level's colour, a ceiling the colour of text.
std::string colour_of(const Scene& scene, const RoofLine& roof);

}  // namespace roofgen::plot
