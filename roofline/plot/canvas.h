// Positions of all parts of a roofline on a canvas of known size: marks, arrows and labels that do not overlap. A file
// also has the points' full names in a table to the right of the plot and, when there are many, below the plot.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roofline/plot/scene.h"

namespace roofgen::plot {

// ---- Placement of labels -----------------------------------------------------------------------------

// Texts are placed so that they do not overlap. A label is a row of discs along its base line, which treats rotated and
// horizontal labels alike. Pixels, y downwards.

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

/// The kernels and the roof that a part belongs to: a page hides the part with them.
struct Owner {
  std::vector<size_t> kernels = {};
  std::optional<size_t> roof = {};
};

/// Pixels from the top left corner. A colour is the name of a class of the SVG's style sheet.
struct Canvas {
  double width = 0, height = 0;
  Box plot;  ///< inside the axes
  struct Mark {
    double x = 0, y = 0, radius = 0;
    size_t shape = 0;  ///< any number: there are seven shapes
    Fill fill = Fill::kOpen;
    std::string colour;
    Owner owner = {};
    std::optional<size_t> point = {};
  };
  struct Segment {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    enum class Kind { kHeadroom, kLevels, kChange } kind = Kind::kLevels;
    std::string colour;
    Owner owner = {};
  };
  struct Label {
    std::string text;
    double x = 0, y = 0, size = 0;
    std::string colour;
    bool centred = false;
    double width = 0;  ///< where the layout depends on the text's width; else 0
    double angle = 0;  ///< degrees, clockwise
    Owner owner = {};
  };
  std::vector<Mark> marks;
  std::vector<Segment> segments;
  std::vector<Label> labels;
};

Canvas lay_out(const Roofline& roofline, const Scene& scene, Place place);

/// A slope has its level's colour, a ceiling the colour of text: names of classes.
std::string colour_of(const Scene& scene, const RoofLine& roof);

}  // namespace roofgen::plot
