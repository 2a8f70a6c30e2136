// The parts of a roofline plot that all renderers share: the visible decades, the ends of each roof, each kernel's
// letter, and the omitted points.
#pragma once

#include <string>
#include <vector>

#include "roofline/plot/figure.h"

namespace roofgen::plot {

/// The ranges of both axes, ends included; all four values are positive and finite.
struct Frame {
  double ai_min = 0.1, ai_max = 1000;          ///< FLOP/byte
  double tflops_min = 0.1, tflops_max = 1000;  ///< TFLOP/s
  double ai_decades() const;
  double tflops_decades() const;
  /// Fractions of the frame; 0 is the left or bottom edge.
  double across(double ai) const;
  double up(double tflops) const;
  bool contains(double ai, double tflops) const;
};

/// One straight line: a slope from the frame's edge to the height of the highest ceiling, or a
/// ceiling from its elbow to the right edge.
struct RoofLine {
  std::string name, value;  ///< "BF16 tensor", "312 TFLOP/s"
  std::string level;        ///< sets the colour: a slope's own level, or the level that a ceiling is under
  bool is_slope = false;
  bool solid = false;  ///< measured or sustained; otherwise from a datasheet
  Origin origin = Origin::kDatasheet;
  double ai0 = 0, tflops0 = 0, ai1 = 0, tflops1 = 0;
  double ridge = 0;     ///< AI of a ceiling's elbow; 0 when no slope has its level
  double reach_ai = 0;  ///< AI where the fastest slope meets a ceiling, if left of its elbow; else 0
};

/// The points of one name: one mark shape and letter, several levels at one height.
struct Kernel {
  std::string letter;  ///< "A" ... "Z", "AA", ...
  std::string name;
  std::vector<size_t> points;  ///< indices into Roofline::points
  std::string note;            ///< explains how the AI differs between memory levels; may be empty
};

struct Scene {
  Frame frame;
  std::string ai_title;         ///< title of the horizontal axis
  std::vector<RoofLine> roofs;  ///< slopes, then ceilings, each in the order of the figure
  std::vector<std::string>
      levels;                     ///< levels of slopes and points, in order of appearance; the index selects the colour
  std::vector<Kernel> kernels;    ///< in order of appearance
  std::vector<size_t> kernel_of;  ///< for each point
  std::vector<std::string> missing;  ///< for each point: the reason it is not drawn; empty when drawn
  std::vector<Arrow> arrows;         ///< arrows with both ends drawn
};

Scene make_scene(const Roofline& roofline);

/// Where a roofline is drawn: an image file has the title and the table of points, too.
enum class Place { kFile, kPage };

enum class Fill { kOpen, kHalf, kFull };
/// Open mark: derived (model, simulated, compiled, datasheet). Half-filled: bytes from a counter. Filled: measured.
Fill fill_of(Origin origin);

/// "0.25", "62.7", "312", "1.2e+05": three significant digits.
std::string number_text(double value);

/// "18%", "3.1%", "104%" of the roof; "" for a point without a roof.
std::string percent_of_roof(const Point& point);

}  // namespace roofgen::plot
