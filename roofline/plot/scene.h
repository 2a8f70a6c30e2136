// A Roofline made ready to draw: the part of a plot that no renderer should decide for itself. Which
// decades are shown, where each roof begins and ends, which letter a kernel has and what is left out.
#pragma once

#include <string>
#include <vector>

#include "roofline/plot/figure.h"

namespace roofgen::plot {

/// The ranges of both axes, ends included; all four are positive and finite.
struct Frame {
  double ai_min = 0.1, ai_max = 1000;          ///< FLOP/byte
  double tflops_min = 0.1, tflops_max = 1000;  ///< TFLOP/s
  double ai_decades() const;
  double tflops_decades() const;
  /// Fractions of the frame, 0 at the left and at the bottom.
  double across(double ai) const;
  double up(double tflops) const;
  bool contains(double ai, double tflops) const;
};

/// One straight line: a slope from the frame's edge to the height of the highest ceiling, or a
/// ceiling from its elbow to the right edge.
struct RoofLine {
  std::string name, value;  ///< "BF16 tensor", "312 TFLOP/s"
  std::string level;        ///< whose colour it has: of a slope its own, of a ceiling the one it is under
  bool is_slope = false;
  bool solid = false;  ///< measured or sustained; else from a datasheet
  Origin origin = Origin::kDatasheet;
  double ai0 = 0, tflops0 = 0, ai1 = 0, tflops1 = 0;
  double ridge = 0;     ///< of a ceiling: AI of its elbow; 0 when no slope has its level
  double reach_ai = 0;  ///< of a ceiling: where the fastest slope meets it, if left of the elbow; else 0
};

/// The points of one name: one mark shape and letter, several levels at one height.
struct Kernel {
  std::string letter;  ///< "A" ... "Z", "AA", ...
  std::string name;
  std::vector<size_t> points;  ///< indices into Roofline::points
  std::string note;            ///< how its AI differs between memory levels, and why; may be empty
};

struct Scene {
  Frame frame;
  std::string ai_title;              ///< of the axis across
  std::vector<RoofLine> roofs;       ///< slopes, then ceilings, each in the order of the figure
  std::vector<std::string> levels;   ///< of slopes and points, in order of appearance: the colours
  std::vector<Kernel> kernels;       ///< in order of appearance
  std::vector<size_t> kernel_of;     ///< of each point
  std::vector<std::string> missing;  ///< of each point: why it cannot be drawn; empty when it can
  std::vector<Arrow> arrows;         ///< those whose two ends are drawn
};

Scene make_scene(const Roofline& roofline);

enum class Fill { kOpen, kHalf, kFull };
/// Open: derived (model, simulated, compiled, datasheet). Half: bytes of a counter. Full: measured.
Fill fill_of(Origin origin);

/// "0.25", "62.7", "312", "1.2e+05": three significant digits.
std::string number_text(double value);

/// "18%", "3.1%", "104%" of the roof; "" when the point has none.
std::string percent_of_roof(const Point& point);

}  // namespace roofgen::plot
