// The content of plots. A page is a list of figures and tables; every renderer (terminal, HTML, SVG)
// draws the same values. docs/use/plots.md has the conventions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::plot {

/// A bandwidth: a line of slope one. Hierarchical rooflines have one per memory level.
struct Slope {
  std::string level = {};  ///< "DRAM", "L2", "shared memory"
  double gb_s = 0;
  Origin origin = Origin::kDatasheet;
  bool sustained = false;  ///< measured or sustained rates are drawn solid, datasheet rates dashed
};

/// A peak arithmetic rate: a horizontal line that begins where it meets the slope named `under`.
struct Ceiling {
  std::string name = {};  ///< "BF16 tensor, FP32 accumulate"
  double tflops = 0;
  Origin origin = Origin::kDatasheet;
  std::string under = "DRAM";
  bool sustained = false;  ///< see Slope::sustained
};

/// A kernel or an operator at one memory level. The levels of one kernel are points with the same `name` and height.
struct Point {
  std::string name = {};  ///< shown in the points table and on hover
  std::string level = "DRAM";
  double ai = 0;                   ///< FLOP per byte of that level, > 0
  double tflops = 0;               ///< achieved; for a model, FLOPs over the modelled time
  double roof_tflops = 0;          ///< the attainable rate, where the arrow points; 0: no arrow
  std::string bound_by = {};       ///< the binding roof
  double time_us = 0;              ///< 0: unknown
  double share = 0;                ///< fraction of the total time, 0..1; sets the mark's area
  Origin origin = Origin::kModel;  ///< kModel, kSimulated: open mark; kMeasured: filled; kCounter: half-filled
  std::vector<std::pair<std::string, std::string>> details = {};  ///< further hover lines, in order
};

/// An arrow between two points, given by index, with the effect of a change: "unfused -> fused".
struct Arrow {
  size_t from = 0, to = 0;
  std::string label = {};
};

struct Roofline {
  std::string title = {};     ///< "Roofline of a100-sxm-80"
  std::string subtitle = {};  ///< conventions in one line: counted FLOPs, origins
  std::vector<Slope> slopes = {};
  std::vector<Ceiling> ceilings = {};
  std::vector<Point> points = {};
  std::vector<Arrow> arrows = {};
};

/// Groups of bars: one group per label, one bar per series.
struct Bars {
  std::string title = {}, y_title = {};
  bool log_y = false;
  std::vector<std::string> labels = {};
  struct Series {
    std::string name = {};
    std::vector<double> values = {};  ///< one per label
  };
  std::vector<Series> series = {};
};

struct Lines {
  std::string title = {}, x_title = {}, y_title = {};
  bool log_x = true, log_y = false;
  struct Series {
    std::string name = {};
    std::vector<std::pair<double, double>> points = {};
    std::vector<std::pair<double, double>> band = {};  ///< low and high end at each point; empty: none
  };
  std::vector<Series> series = {};
  std::vector<std::pair<std::string, double>> marks = {};  ///< horizontal lines, such as a ridge
};

/// A grid of numbers: rows by y, columns by x. Cells below `threshold` (the ridge) have one colour family, other cells
/// a second one; the shade grows with the distance from the threshold.
struct Heatmap {
  std::string title = {}, x_title = {}, y_title = {}, value_title = {};
  std::vector<std::string> x_labels = {}, y_labels = {};
  std::vector<std::vector<double>> values = {};  ///< [y][x]
  double threshold = 0;
  std::string below = {}, above = {};  ///< "MEM", "COMP": printed in the cells
};

struct TableBlock {
  std::string title = {};
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};
};

using Block = std::variant<Roofline, Bars, Lines, Heatmap, TableBlock>;

struct Page {
  std::string title = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< "device" -> "h200-sxm", shown above the figures
  std::vector<std::string> warnings = {};
  std::vector<Block> blocks = {};
};

}  // namespace roofgen::plot
