// A roofline as a gnuplot script: gnuplot has the axes, the roofs and the files; marks and labels are
// placed here, on a canvas of a known size, with the points' full names in a table on its right.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/jinja/jinja.h"
#include "roofline/plot/placement.h"
#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"
#include "roofline/units.h"

namespace roofgen::plot {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kPlotWidth = 860, kMinPlotHeight = 430, kMaxPlotHeight = 960;
constexpr double kLeft = 84, kTop = 58, kTitleLine = 16, kBelow = 72, kPanel = 540, kGap = 36;
constexpr size_t kNameColumns = 54, kSmallColumns = 64, kTitleColumns = 170;  ///< characters of a line
constexpr const char *kInk = "#16181d", *kSoft = "#5c6370", *kFaint = "#8b93a1";
constexpr const char* kLevelColours[] = {"#2166c4", "#d1600f", "#7a3fc2", "#0c8a6a", "#c2305e", "#8a6d00"};

/// For a single-quoted string and a comment. gnuplot's own way to write a quote, doubling it, fails at
/// the start of a string, so quotes become the sign that only looks like one.
std::string quoted(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c == '\'' || c == '`')
      out += "\u2019";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

/// Nearly the width of text of `size` pixels in the usual sans-serif (DejaVu Sans); gnuplot does not tell.
double text_width(std::string_view text, double size) {
  double units = 0;
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;
    if (std::string_view(" .,:;'|!ijltfrI()[]/").find(c) != std::string_view::npos)
      units += 0.36;
    else if (std::string_view("mwMW@%").find(c) != std::string_view::npos)
      units += 0.95;
    else
      units += c >= 'a' && c <= 'z' ? 0.6 : 0.66;
  }
  return units * size;
}

/// Broken at a blank near the end of a line of at most `most` characters, or where it is full.
std::vector<std::string> broken(std::string_view name, size_t most) {
  std::vector<std::string> lines;
  std::string line;
  size_t length = 0;
  for (size_t i = 0; i < name.size();) {
    size_t end = i + 1;
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    line += name.substr(i, end - i);
    i = end;
    if (++length >= most || (length > most - 14 && line.back() == ' ')) {
      lines.push_back(std::move(line));
      line.clear();
      length = 0;
    }
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

using Corners = std::vector<std::pair<double, double>>;

/// The shapes of templates/plots/common.js: circle, square, triangle, diamond, ...
Corners shape_corners(size_t shape, double radius) {
  struct Shape {
    int corners;
    double start, scale;
  };
  constexpr Shape kShapes[] = {{36, 0, 1},    {4, 45, 1.24},  {3, -90, 1.15}, {4, -90, 1.18},
                               {3, 90, 1.15}, {5, -90, 1.08}, {6, 0, 1.05}};
  const Shape& s = kShapes[shape % std::size(kShapes)];
  Corners corners;
  for (int i = 0; i < s.corners; ++i) {
    const double angle = (s.start + 360.0 * i / s.corners) * kPi / 180;
    corners.push_back({s.scale * radius * std::cos(angle), s.scale * radius * std::sin(angle)});
  }
  return corners;
}

/// What of a convex shape is left of its centre.
Corners left_half(const Corners& shape) {
  Corners half;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto& [x0, y0] = shape[i];
    const auto& [x1, y1] = shape[(i + 1) % shape.size()];
    if (x0 <= 0) half.push_back(shape[i]);
    if ((x0 < 0 && x1 > 0) || (x0 > 0 && x1 < 0)) half.push_back({0, y0 + (y1 - y0) * x0 / (x0 - x1)});
  }
  return half;
}

class Drawing {
 public:
  Drawing(const Roofline& roofline, const Scene& scene)
      : roofline_(roofline), scene_(scene), placement_(set_area()), missing_labels_(0) {}
  expr::Map scope(PlotFormat format);

 private:
  Box set_area() {
    const double height = std::clamp(kPlotWidth / scene_.frame.ai_decades() * scene_.frame.tflops_decades(),
                                     kMinPlotHeight, kMaxPlotHeight);
    const double top =
        kTop + kTitleLine * static_cast<double>(broken(roofline_.subtitle, kTitleColumns).size());
    area_ = {kLeft, top, kLeft + kPlotWidth, top + height};
    return area_;
  }
  double x(double ai) const { return area_.left + scene_.frame.across(ai) * (area_.right - area_.left); }
  double y(double tflops) const {
    return area_.bottom - scene_.frame.up(tflops) * (area_.bottom - area_.top);
  }
  double radius(const Point& point) const {
    return point.share > 0 ? std::max(5.0, 22 * std::sqrt(std::min(1.0, point.share))) : 7;
  }
  std::string level_colour(const std::string& level) const {
    const size_t i = std::find(scene_.levels.begin(), scene_.levels.end(), level) - scene_.levels.begin();
    return kLevelColours[i % std::size(kLevelColours)];
  }

  void draw_mark(double px, double py, double r, size_t shape, Fill fill, const std::string& colour);
  void draw_arrow(double x0, double y0, double x1, double y1, const std::string& style,
                  const std::string& colour);
  void draw_label(const std::string& text, double px, double py, double size, const std::string& colour,
                  const char* align = "left", double angle = 0);
  void draw_points();
  void draw_change(const Arrow& arrow);
  struct Change {
    std::string label;
    double x0, y0, x1, y1;
  };
  void label_change(const Change& change);
  void label_roof(const RoofLine& roof);
  void label_point(const Kernel& kernel);
  void label_ridge(const RoofLine& roof);
  void draw_panel();
  std::string tics(double low, double high) const;

  // Fractions of the canvas, y upwards; its height is known at the end.
  double fx(double px) const { return std::round(1e5 * px / width_) / 1e5; }
  double fy(double py) const { return std::round(1e5 * (1 - py / height_)) / 1e5; }

  struct Shape {
    Corners corners;
    std::string colour, border;
  };
  struct Segment {
    double x0, y0, x1, y1;
    std::string style, colour;
  };
  struct Label {
    std::string text;
    double x, y, size;
    std::string colour, align;
    double angle;
  };

  const Roofline& roofline_;
  const Scene& scene_;
  Box area_;
  double width_ = kLeft + kPlotWidth + kGap + kPanel, height_ = 0;
  Placement placement_;
  std::vector<Shape> shapes_;
  std::vector<Segment> segments_;
  std::vector<Label> labels_;
  std::vector<Change> changes_;
  size_t missing_labels_;
};

void Drawing::draw_mark(double px, double py, double r, size_t shape, Fill fill, const std::string& colour) {
  const auto add = [&](Corners corners, const std::string& inside) {
    for (auto& [dx, dy] : corners) dx += px, dy += py;
    shapes_.push_back({std::move(corners), inside, colour});
  };
  const Corners corners = shape_corners(shape, r);
  add(corners, fill == Fill::kFull ? colour : "#ffffff");
  if (fill == Fill::kHalf) add(left_half(corners), colour);
}

void Drawing::draw_arrow(double x0, double y0, double x1, double y1, const std::string& style,
                         const std::string& colour) {
  segments_.push_back({x0, y0, x1, y1, style, colour});
}

void Drawing::draw_label(const std::string& text, double px, double py, double size,
                         const std::string& colour, const char* align, double angle) {
  labels_.push_back({quoted(text), px, py, size, colour, align, angle});
}

void Drawing::draw_points() {
  std::vector<size_t> drawn;
  for (size_t i = 0; i < roofline_.points.size(); ++i)
    if (scene_.missing[i].empty()) drawn.push_back(i);
  // Large marks first, so that small ones stay visible on them.
  std::stable_sort(drawn.begin(), drawn.end(), [&](size_t a, size_t b) {
    return radius(roofline_.points[a]) > radius(roofline_.points[b]);
  });
  for (size_t i : drawn) {
    const Point& point = roofline_.points[i];
    const double px = x(point.ai), py = y(point.tflops), r = radius(point);
    placement_.take({px, py, r + 2});
    draw_mark(px, py, r, scene_.kernel_of[i], fill_of(point.origin), level_colour(point.level));
    const double end = point.roof_tflops > 0 ? std::max(area_.top, y(point.roof_tflops)) : py;
    if (py - r - 2 - end > 8)
      draw_arrow(px, py - r - 2, px, end, "head filled size screen 0.006,18 dashtype 3 linewidth 1.2",
                 level_colour(point.level));
  }
  for (const Kernel& kernel : scene_.kernels) {  // the levels of one kernel hang together
    double low = area_.right, high = area_.left, py = 0, left_r = 0, right_r = 0;
    for (size_t i : kernel.points) {
      if (!scene_.missing[i].empty()) continue;
      const Point& point = roofline_.points[i];
      py = y(point.tflops);
      if (x(point.ai) <= low) low = x(point.ai), left_r = radius(point);
      if (x(point.ai) >= high) high = x(point.ai), right_r = radius(point);
    }
    if (high - low > left_r + right_r)
      draw_arrow(low + left_r, py, high - right_r, py, "nohead linewidth 0.8", "#c3c8d0");
  }
}

void Drawing::draw_change(const Arrow& arrow) {
  const Point &from = roofline_.points[arrow.from], &to = roofline_.points[arrow.to];
  double x0 = x(from.ai), y0 = y(from.tflops), x1 = x(to.ai), y1 = y(to.tflops);
  const double length = std::hypot(x1 - x0, y1 - y0), near = radius(from) + 4, far = radius(to) + 4;
  if (length < near + far + 6) return;
  const double dx = (x1 - x0) / length, dy = (y1 - y0) / length;
  x0 += dx * near, y0 += dy * near, x1 -= dx * far, y1 -= dy * far;
  draw_arrow(x0, y0, x1, y1, "head filled size screen 0.008,18 linewidth 1.6", kSoft);
  placement_.add_line(x0, y0, x1, y1);
  if (!arrow.label.empty()) changes_.push_back({arrow.label, x0, y0, x1, y1});
}

void Drawing::label_change(const Change& change) {
  std::vector<Spot> spots;
  const double width = text_width(change.label, 12) + 6;
  for (double t : {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8}) {
    const double px = change.x0 + t * (change.x1 - change.x0), py = change.y0 + t * (change.y1 - change.y0);
    for (double away : {16.0, 28.0, -16.0, -28.0})
      for (double aside : {0.0, width / 2 + 10, -width / 2 - 10})
        spots.push_back({px + aside, py + away, 0, width, 14});
  }
  if (const auto spot = placement_.place(spots))
    draw_label(change.label, spot->x, spot->y, 9, kSoft, "center");
}

void Drawing::label_roof(const RoofLine& roof) {
  const double x0 = x(roof.ai0), y0 = y(roof.tflops0), x1 = x(roof.ai1), y1 = y(roof.tflops1);
  const double length = std::hypot(x1 - x0, y1 - y0), angle = std::atan2(y1 - y0, x1 - x0);
  const std::string texts[] = {roof.name + "  " + roof.value, roof.name + " " + roof.value};
  const double sizes[] = {11, 9};
  std::vector<Spot> spots;
  for (size_t variant = 0; variant < std::size(texts); ++variant) {
    const double height = sizes[variant] * 1.34 + 2, width = text_width(texts[variant], height) + 6,
                 room = length - width;
    constexpr int kSteps = 48;
    std::vector<double> order;
    for (int i = 0; i <= kSteps; ++i) order.push_back(1 - static_cast<double>(i) / kSteps);
    if (roof.is_slope)
      std::stable_sort(order.begin(), order.end(),
                       [](double a, double b) { return std::fabs(a - 0.45) < std::fabs(b - 0.45); });
    for (double t : order)
      for (double side : {-1, 1}) {
        const double along = room > 0 ? width / 2 + t * room : length - width / 2,
                     away = side * (height / 2 + 4);
        spots.push_back({x0 + std::cos(angle) * along - std::sin(angle) * away,
                         y0 + std::sin(angle) * along + std::cos(angle) * away, angle, width, height,
                         static_cast<double>(variant), variant});
      }
  }
  if (const auto spot = placement_.place(spots))
    draw_label(texts[spot->variant], spot->x, spot->y, sizes[spot->variant],
               roof.is_slope ? level_colour(roof.level) : kInk, "center", -angle * 180 / kPi);
  else
    ++missing_labels_;
}

void Drawing::label_point(const Kernel& kernel) {
  std::vector<Spot> spots;
  const double width = text_width(kernel.letter, 14) + 6;
  for (size_t i : kernel.points) {
    if (!scene_.missing[i].empty()) continue;
    const Point& point = roofline_.points[i];
    for (double angle : {0.6, -0.6, 0.0, 2.5, -2.5, 3.14, 1.57, -1.57})
      for (double more : {4.0, 10.0}) {
        const double reach = radius(point) + width / 2 + more;
        spots.push_back(
            {x(point.ai) + reach * std::cos(angle), y(point.tflops) + reach * std::sin(angle), 0, width, 15});
      }
  }
  if (const auto spot = placement_.place(spots))
    draw_label(kernel.letter, spot->x, spot->y, 11, kInk, "center");
}

void Drawing::label_ridge(const RoofLine& roof) {
  if (roof.ridge <= 0 || roof.ridge <= scene_.frame.ai_min || roof.ridge >= scene_.frame.ai_max) return;
  const std::string texts[] = {"ridge " + number_text(roof.ridge), number_text(roof.ridge)};
  std::vector<Spot> spots;
  for (size_t variant = 0; variant < std::size(texts); ++variant)
    for (double up : {11.0, 26.0})
      spots.push_back(
          {x(roof.ridge), area_.bottom - up, 0, text_width(texts[variant], 12) + 8, 13, 0, variant});
  if (const auto spot = placement_.place(spots))
    draw_label(texts[spot->variant], spot->x, spot->y, 8.5, kFaint, "center");
}

/// The table of points: letter and full name, below it the numbers.
void Drawing::draw_panel() {
  const double left = area_.right + kGap;
  double py = area_.top + 4;
  const auto line = [&](const std::string& text, double indent, double size, const char* colour,
                        double step) {
    const std::vector<std::string> lines = broken(text, kSmallColumns);
    for (size_t i = 0; i < lines.size(); ++i, py += i < lines.size() ? 15 : step)
      draw_label(lines[i], left + indent, py, size, colour);
  };
  for (size_t k = 0; k < scene_.kernels.size(); ++k) {
    const Kernel& kernel = scene_.kernels[k];
    const Point& first = roofline_.points[kernel.points[0]];
    draw_mark(left + 8, py, 6.5, k, fill_of(first.origin), level_colour(first.level));
    draw_label(kernel.letter, left + 22, py, 11, kInk);
    for (const std::string& text : broken(kernel.name, kNameColumns)) line(text, 46, 10.5, kInk, 17);
    std::string numbers = "AI";
    for (size_t i : kernel.points)
      numbers += fmt::format("{} {} {}", i == kernel.points[0] ? "" : ",", roofline_.points[i].level,
                             number_text(roofline_.points[i].ai));
    line(numbers + fmt::format(";  {} TFLOP/s", number_text(first.tflops)), 46, 9, kSoft, 15);
    std::string rest = percent_of_roof(first);
    if (!rest.empty()) rest += " of its roof";
    if (!first.bound_by.empty()) rest += (rest.empty() ? "" : ", ") + first.bound_by;
    if (first.time_us > 0) rest += (rest.empty() ? "" : ";  ") + time_text(first.time_us * 1e-6);
    rest += (rest.empty() ? "" : ";  ") + std::string(to_string(first.origin));
    if (const std::string& why = scene_.missing[kernel.points[0]]; !why.empty())
      rest += ";  not drawn: " + why;
    line(rest, 46, 9, kSoft, 24);
  }
  for (const Arrow& arrow : scene_.arrows) {
    const auto letter = [&](size_t i) { return scene_.kernels[scene_.kernel_of[i]].letter; };
    line(fmt::format("{} \u2192 {}: {}", letter(arrow.from), letter(arrow.to), arrow.label), 0, 9.5, kSoft,
         18);
  }
  py += 6;
  bool has[3] = {};
  for (const Point& point : roofline_.points) has[static_cast<int>(fill_of(point.origin))] = true;
  const std::pair<Fill, const char*> fills[] = {
      {Fill::kOpen, "model or simulated"}, {Fill::kHalf, "bytes from counters"}, {Fill::kFull, "measured"}};
  for (const auto& [fill, text] : fills) {
    if (!has[static_cast<int>(fill)]) continue;
    draw_mark(left + 8, py, 5.5, 0, fill, kSoft);
    line(text, 22, 9, kSoft, 17);
  }
  line("Roofs: dashed datasheet, solid measured or sustained", 0, 9, kSoft, 17);
  if (missing_labels_ > 0)  // said, not dropped in silence
    for (const RoofLine& roof : scene_.roofs)
      line(fmt::format("{}  {}  ({})", roof.name, roof.value, to_string(roof.origin)), 0, 9, kSoft, 16);
  height_ = std::max(area_.bottom + kBelow, py + 16);
}

std::string Drawing::tics(double low, double high) const {
  std::string out;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::ceil(std::log10(high));
       ++power)
    for (int step = 1; step < 10; ++step) {
      const double value = step * std::pow(10, power);
      if (value < low * 0.999999 || value > high * 1.000001) continue;
      const std::string text = power > 4 || power < -3 ? fmt::format("1e{}", power) : number_text(value);
      out += fmt::format("{}'{}' {:.6g} {}", out.empty() ? "" : ", ", step == 1 ? text : "", value,
                         step == 1 ? 0 : 1);
    }
  return out;
}

expr::Map Drawing::scope(PlotFormat format) {
  for (const RoofLine& roof : scene_.roofs)
    placement_.add_line(x(roof.ai0), y(roof.tflops0), x(roof.ai1), y(roof.tflops1), roof.is_slope ? 3 : 1);
  for (const RoofLine& roof : scene_.roofs)
    if (roof.ridge > scene_.frame.ai_min && roof.ridge < scene_.frame.ai_max)
      draw_mark(x(roof.ridge), y(roof.tflops0), 2.4, 0, Fill::kFull, kInk);
  draw_points();
  for (const Arrow& arrow : scene_.arrows) draw_change(arrow);
  for (size_t i = scene_.roofs.size(); i-- > 0;) label_roof(scene_.roofs[i]);
  for (const Kernel& kernel : scene_.kernels) label_point(kernel);
  for (const Change& change : changes_) label_change(change);
  for (const RoofLine& roof : scene_.roofs) label_ridge(roof);
  draw_panel();
  draw_label(roofline_.title, area_.left, 24, 14, kInk);
  double line = 48;
  for (const std::string& text : broken(roofline_.subtitle, kTitleColumns)) {
    draw_label(text, area_.left, line, 9.5, kSoft);
    line += kTitleLine;
  }

  // gnuplot's svg takes a font's size for pixels, its pngcairo for points.
  const double points = format == PlotFormat::kSvg ? 4.0 / 3 : 1;
  expr::List roofs, arrows, shapes, labels;
  for (const RoofLine& roof : scene_.roofs)
    roofs.push_back(expr::Map{{"name", quoted(roof.name)},
                              {"value", roof.value},
                              {"origin", to_string(roof.origin)},
                              {"ai0", roof.ai0},
                              {"tflops0", roof.tflops0},
                              {"ai1", roof.ai1},
                              {"tflops1", roof.tflops1},
                              {"ridge", roof.ridge},
                              {"reach", roof.reach_ai},
                              {"dash", roof.solid ? "1" : "(14, 7)"},
                              {"line_width", roof.is_slope ? 2.2 : 1.8},
                              {"colour", roof.is_slope ? level_colour(roof.level) : kInk}});
  for (const Segment& s : segments_)
    arrows.push_back(expr::Map{{"x0", fx(s.x0)},
                               {"y0", fy(s.y0)},
                               {"x1", fx(s.x1)},
                               {"y1", fy(s.y1)},
                               {"style", s.style},
                               {"colour", s.colour}});
  for (const Shape& shape : shapes_) {
    std::string corners;
    for (const auto& [px, py] : shape.corners) corners += fmt::format("screen {},{} to ", fx(px), fy(py));
    corners += fmt::format("screen {},{}", fx(shape.corners[0].first), fy(shape.corners[0].second));
    shapes.push_back(expr::Map{{"corners", corners}, {"colour", shape.colour}, {"border", shape.border}});
  }
  for (const Label& label : labels_)
    labels.push_back(expr::Map{{"text", label.text},
                               {"x", fx(label.x)},
                               {"y", fy(label.y)},
                               {"size", std::round(10 * label.size * points) / 10},
                               {"align", label.align},
                               {"colour", label.colour},
                               {"angle", std::round(100 * label.angle) / 100}});
  const bool levels =
      scene_.levels.size() > 1 && std::any_of(roofline_.points.begin(), roofline_.points.end(),
                                              [](const Point& point) { return point.level != "DRAM"; });
  const std::string level = levels ? "of each level" : scene_.levels.empty() ? "DRAM" : scene_.levels[0];
  const Frame& frame = scene_.frame;
  return {{"title", quoted(roofline_.title)},
          {"terminal", format == PlotFormat::kSvg ? "svg" : "pngcairo"},
          {"font", std::round(10 * 10 * points) / 10},
          {"width", static_cast<int64_t>(std::ceil(width_))},
          {"height", static_cast<int64_t>(std::ceil(height_))},
          {"left", fx(area_.left)},
          {"right", fx(area_.right)},
          {"top", fy(area_.top)},
          {"bottom", fy(area_.bottom)},
          {"frame", expr::Map{{"ai_min", frame.ai_min},
                              {"ai_max", frame.ai_max},
                              {"tflops_min", frame.tflops_min},
                              {"tflops_max", frame.tflops_max}}},
          {"x_tics", tics(frame.ai_min, frame.ai_max)},
          {"y_tics", tics(frame.tflops_min, frame.tflops_max)},
          {"x_title", quoted(fmt::format("Arithmetic intensity [FLOP/byte, {}]", level))},
          {"roofs", std::move(roofs)},
          {"arrows", std::move(arrows)},
          {"shapes", std::move(shapes)},
          {"labels", std::move(labels)}};
}

}  // namespace

Result<std::string> gnuplot_script(const Roofline& roofline, PlotFormat format, const DataFiles& files) {
  const Scene scene = make_scene(roofline);
  const auto loader = [&](std::string_view name) { return files.read(fmt::format("templates/{}", name)); };
  ROOFGEN_TRY(jinja::Rendered rendered,
              jinja::render(loader, "plots/roofline.gp.jinja", Drawing(roofline, scene).scope(format)));
  return std::move(rendered.text);
}

}  // namespace roofgen::plot
