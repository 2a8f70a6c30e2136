#include "roofline/plot/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "base/units.h"

namespace roofgen::plot {

namespace {

constexpr double kPlotWidth = 860, kMinPlotHeight = 430, kMaxPlotHeight = 960;
constexpr double kLeft = 84, kTop = 58, kTitleLine = 16, kBelow = 72, kPanel = 540, kGap = 36;
constexpr double kPageTop = 12, kPageRight = 32;
constexpr size_t kMaxListed = 120;  ///< kernels that get a letter and an entry in the table
constexpr size_t kNameColumns = 50, kSmallColumns = 64, kTitleColumns = 170;  ///< characters per line
constexpr size_t kLevelColours = 7;                                           ///< classes c0, c1, ...
constexpr const char *kInk = "ink", *kSoft = "soft", *kFaint = "faint";

/// Approximate width of text of `size` pixels in DejaVu Sans. Labels whose place depends on their width are drawn with
/// this width whatever the font is.
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

/// Lines of at most `most` characters, broken at the last blank of a line or, if that is far from the end, within a
/// word.
std::vector<std::string> broken(std::string_view text, size_t most) {
  const auto bytes_of = [&](size_t characters) {  // of the first `characters`
    size_t at = 0;
    for (; at < text.size() && characters > 0; --characters)
      for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;) ++at;
    return at;
  };
  std::vector<std::string> lines;
  while (bytes_of(most) < text.size()) {
    size_t end = bytes_of(most);
    const size_t blank = text.rfind(' ', end);
    if (blank != std::string_view::npos && blank > end * 2 / 3) end = blank;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string level_colour(const Scene& scene, const std::string& level) {
  const size_t i = std::find(scene.levels.begin(), scene.levels.end(), level) - scene.levels.begin();
  return fmt::format("c{}", i % kLevelColours);
}

/// The value without its unit: a ceiling's unit is the axis's. A bandwidth keeps its unit.
std::string number_of(const RoofLine& roof) {
  return roof.is_slope ? roof.value : roof.value.substr(0, roof.value.find(' '));
}

/// Decades have equal length on both axes, within the height limits of the canvas.
Canvas empty_canvas(const Roofline& roofline, const Scene& scene, Place place) {
  const double height =
      std::clamp(kPlotWidth / scene.frame.ai_decades() * scene.frame.tflops_decades(), kMinPlotHeight, kMaxPlotHeight);
  const bool file = place == Place::kFile;
  const double top =
      file ? kTop + kTitleLine * static_cast<double>(broken(roofline.subtitle, kTitleColumns).size()) : kPageTop;
  Canvas canvas;
  canvas.width = kLeft + kPlotWidth + (file ? kGap + kPanel : kPageRight);
  canvas.height = top + height + kBelow;
  canvas.plot = {kLeft, top, kLeft + kPlotWidth, top + height};
  return canvas;
}

class Drawing {
 public:
  Drawing(const Roofline& roofline, const Scene& scene, Place place)
      : roofline_(roofline),
        scene_(scene),
        place_(place),
        canvas_(empty_canvas(roofline, scene, place)),
        placement_(canvas_.plot) {}
  Canvas draw();

 private:
  struct Change {
    std::string label;
    double x0, y0, x1, y1;
    Owner owner;
  };

  double x(double ai) const {
    return canvas_.plot.left + scene_.frame.across(ai) * (canvas_.plot.right - canvas_.plot.left);
  }
  double y(double tflops) const {
    return canvas_.plot.bottom - scene_.frame.up(tflops) * (canvas_.plot.bottom - canvas_.plot.top);
  }
  double radius(const Point& point) const {
    return point.share > 0 ? std::max(5.0, 22 * std::sqrt(std::min(1.0, point.share))) : 7;
  }

  Owner owner_of(size_t point) const { return {.kernels = {scene_.kernel_of[point]}}; }
  Owner owner_of(const RoofLine& roof) const { return {.roof = &roof - scene_.roofs.data()}; }

  void draw_label(const std::string& text, double px, double py, double size, const std::string& colour);
  /// Centred at the spot.
  void draw_label(const std::string& text, const Spot& spot, double size, const std::string& colour, Owner owner);
  double draw_text(const std::string& text, double left, double py, double size, const char* colour, double step);
  void draw_points();
  void draw_change(const Arrow& arrow);
  void label_change(const Change& change);
  void label_roofs();
  void label_roof(const std::vector<const RoofLine*>& roofs);
  void label_point(const Kernel& kernel);
  void label_ridge(const RoofLine& roof);
  size_t listed() const { return std::min(kMaxListed, scene_.kernels.size()); }
  double draw_entry(size_t index, double left, double py);
  double draw_legend(double left, double py);
  void draw_panel();

  const Roofline& roofline_;
  const Scene& scene_;
  const Place place_;
  Canvas canvas_;
  Placement placement_;
  std::vector<Change> changes_;
  std::vector<const RoofLine*> unlabelled_;
  std::set<std::string> ridges_;  ///< labelled ridges
};

void Drawing::draw_label(const std::string& text, double px, double py, double size, const std::string& colour) {
  canvas_.labels.push_back({text, px, py, size, colour});
}

void Drawing::draw_label(const std::string& text, const Spot& spot, double size, const std::string& colour,
                         Owner owner) {
  const double width = text_width(text, size);
  canvas_.labels.push_back(
      {text, spot.x, spot.y, size, colour, true, width, spot.angle * 180 / std::numbers::pi, std::move(owner)});
}

void Drawing::draw_points() {
  std::vector<size_t> drawn;
  for (size_t i = 0; i < roofline_.points.size(); ++i)
    if (scene_.missing[i].empty()) drawn.push_back(i);
  // Large marks first, so that small marks on top of them stay visible.
  std::stable_sort(drawn.begin(), drawn.end(),
                   [&](size_t a, size_t b) { return radius(roofline_.points[a]) > radius(roofline_.points[b]); });
  for (size_t i : drawn) {
    const Point& point = roofline_.points[i];
    const double px = x(point.ai), py = y(point.tflops), r = radius(point);
    placement_.take({px, py, r + 2});
    const std::string colour = level_colour(scene_, point.level);
    canvas_.marks.push_back({px, py, r, scene_.kernel_of[i], fill_of(point.origin), colour, owner_of(i), i});
    const double end = point.roof_tflops > 0 ? std::max(canvas_.plot.top, y(point.roof_tflops)) : py;
    if (py - r - 2 - end > 8)
      canvas_.segments.push_back({px, py - r - 2, px, end, Canvas::Segment::Kind::kHeadroom, colour, owner_of(i)});
  }
  for (const Kernel& kernel : scene_.kernels) {  // connects the memory levels of one kernel
    double low = canvas_.plot.right, high = canvas_.plot.left, py = 0, left_r = 0, right_r = 0;
    for (size_t i : kernel.points) {
      if (!scene_.missing[i].empty()) continue;
      const Point& point = roofline_.points[i];
      py = y(point.tflops);
      if (x(point.ai) <= low) low = x(point.ai), left_r = radius(point);
      if (x(point.ai) >= high) high = x(point.ai), right_r = radius(point);
    }
    if (high - low > left_r + right_r)
      canvas_.segments.push_back({low + left_r, py, high - right_r, py, Canvas::Segment::Kind::kLevels, kFaint,
                                  owner_of(kernel.points.front())});
  }
}

void Drawing::draw_change(const Arrow& arrow) {
  const Point &from = roofline_.points[arrow.from], &to = roofline_.points[arrow.to];
  double x0 = x(from.ai), y0 = y(from.tflops), x1 = x(to.ai), y1 = y(to.tflops);
  const double length = std::hypot(x1 - x0, y1 - y0), near = radius(from) + 4, far = radius(to) + 4;
  if (length < near + far + 6) return;
  const double dx = (x1 - x0) / length, dy = (y1 - y0) / length;
  x0 += dx * near, y0 += dy * near, x1 -= dx * far, y1 -= dy * far;
  const Owner both{.kernels = {scene_.kernel_of[arrow.from], scene_.kernel_of[arrow.to]}};
  canvas_.segments.push_back({x0, y0, x1, y1, Canvas::Segment::Kind::kChange, kSoft, both});
  placement_.add_line(x0, y0, x1, y1);
  placement_.take({x1 - 5 * dx, y1 - 5 * dy, 6});  // the arrow's head
  if (!arrow.label.empty()) changes_.push_back({arrow.label, x0, y0, x1, y1, both});
}

void Drawing::label_change(const Change& change) {
  std::vector<Spot> spots;
  const double width = text_width(change.label, 12) + 6;
  for (double t : {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8}) {
    const double px = change.x0 + t * (change.x1 - change.x0), py = change.y0 + t * (change.y1 - change.y0);
    for (double away : {16.0, 28.0, 40.0, -16.0, -28.0})
      for (double aside : {0.0, width / 2 + 10, -width / 2 - 10})
        spots.push_back({px + aside, py + away, 0, width, 14});
  }
  if (const auto spot = placement_.place(spots)) draw_label(change.label, *spot, 12, kSoft, change.owner);
}

/// Slopes of one level that nearly touch (datasheet and measured) share one label, on the faster slope.
void Drawing::label_roofs() {
  std::vector<const RoofLine*> slopes;
  for (size_t i = scene_.roofs.size(); i-- > 0;)
    if (scene_.roofs[i].is_slope)
      slopes.push_back(&scene_.roofs[i]);
    else
      label_roof({&scene_.roofs[i]});
  const auto speed = [](const RoofLine* roof) { return roof->tflops1 / roof->ai1; };
  std::stable_sort(slopes.begin(), slopes.end(),
                   [&](const RoofLine* a, const RoofLine* b) { return speed(a) > speed(b); });
  constexpr double kTouching = 24;  // pixels across, so about 17 between the lines
  while (!slopes.empty()) {
    const RoofLine* first = slopes.front();
    const auto others = std::stable_partition(slopes.begin(), slopes.end(), [&](const RoofLine* other) {
      return other->level == first->level && x(1) - x(speed(other) / speed(first)) < kTouching;
    });
    label_roof({slopes.begin(), others});
    slopes.erase(slopes.begin(), others);
  }
}

/// Name and value along the line: at the right end of a ceiling, in the middle of a slope.
void Drawing::label_roof(const std::vector<const RoofLine*>& roofs) {
  const RoofLine& roof = *roofs.front();
  const double x0 = x(roof.ai0), y0 = y(roof.tflops0), x1 = x(roof.ai1), y1 = y(roof.tflops1);
  const double length = std::hypot(x1 - x0, y1 - y0), angle = std::atan2(y1 - y0, x1 - x0);
  std::string values = roof.value;
  for (size_t i = 1; i < roofs.size(); ++i)
    values +=
        fmt::format(", {}{}", roofs[i]->origin == roof.origin ? "" : to_string(roofs[i]->origin) + std::string(" "),
                    roofs[i]->value);
  std::string numbers = number_of(roof);
  for (size_t i = 1; i < roofs.size(); ++i) numbers += " / " + number_of(*roofs[i]);
  const std::string texts[] = {roof.name + "  " + values, roof.name + " " + values, roof.name + " " + numbers};
  const double sizes[] = {14.5, 12, 12};
  std::vector<Spot> spots;
  for (size_t variant = 0; variant < std::size(texts); ++variant) {
    const double height = sizes[variant] + 2, width = text_width(texts[variant], sizes[variant]) + 6;
    const double room = length - width;
    constexpr int kSteps = 48;
    std::vector<double> order;
    for (int i = 0; i <= kSteps; ++i) order.push_back(1 - static_cast<double>(i) / kSteps);
    if (roof.is_slope)
      std::stable_sort(order.begin(), order.end(),
                       [](double a, double b) { return std::fabs(a - 0.45) < std::fabs(b - 0.45); });
    for (double t : order)
      for (double side : {-1, 1})
        for (double clear : {0, 13}) {                 // the second pass allows labels over marks on the line
          if (side > 0 && roofs.size() > 1) continue;  // between the lines
          const double along = room > 0 ? width / 2 + t * room : length - width / 2;
          const double away = side * (height / 2 + 4 + clear);
          spots.push_back({x0 + std::cos(angle) * along - std::sin(angle) * away,
                           y0 + std::sin(angle) * along + std::cos(angle) * away, angle, width, height,
                           static_cast<double>(variant) + (clear > 0 ? 0.5 : 0), variant});
        }
  }
  if (const auto spot = placement_.place(spots))
    draw_label(texts[spot->variant], *spot, sizes[spot->variant], colour_of(scene_, roof), owner_of(roof));
  else
    unlabelled_.insert(unlabelled_.end(), roofs.begin(), roofs.end());
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
    draw_label(kernel.letter, *spot, 14.5, kInk, owner_of(kernel.points.front()));
}

void Drawing::label_ridge(const RoofLine& roof) {
  if (roof.ridge <= 0 || roof.ridge <= scene_.frame.ai_min || roof.ridge >= scene_.frame.ai_max) return;
  const std::string value = number_text(roof.ridge);
  if (!ridges_.insert(value).second) return;  // another ceiling of the same height
  const std::string texts[] = {"ridge " + value, value};
  std::vector<Spot> spots;
  for (size_t variant = 0; variant < std::size(texts); ++variant)
    for (double up : {11.0, 26.0})
      spots.push_back(
          {x(roof.ridge), canvas_.plot.bottom - up, 0, text_width(texts[variant], 11.5) + 8, 13, 0, variant});
  if (const auto spot = placement_.place(spots)) draw_label(texts[spot->variant], *spot, 11.5, kFaint, owner_of(roof));
}

double Drawing::draw_text(const std::string& text, double left, double py, double size, const char* colour,
                          double step) {
  const std::vector<std::string> lines = broken(text, kSmallColumns);
  for (size_t i = 0; i < lines.size(); ++i, py += i < lines.size() ? 15 : step)
    draw_label(lines[i], left, py, size, colour);
  return py;
}

/// The kernel's letter and full name above its numbers. Returns the y position of the next entry.
double Drawing::draw_entry(size_t index, double left, double py) {
  const Kernel& kernel = scene_.kernels[index];
  const Point& first = roofline_.points[kernel.points[0]];
  canvas_.marks.push_back({left + 8, py, 6.5, index, fill_of(first.origin), level_colour(scene_, first.level)});
  draw_label(kernel.letter, left + 22, py, 14.5, kInk);
  left += 50;
  for (const std::string& text : broken(kernel.name, kNameColumns)) py = draw_text(text, left, py, 14, kInk, 17);
  std::string numbers = "AI";
  for (size_t i : kernel.points)
    numbers += fmt::format("{} {} {}", i == kernel.points[0] ? "" : ",", roofline_.points[i].level,
                           number_text(roofline_.points[i].ai));
  py = draw_text(numbers + fmt::format(";  {} TFLOP/s", number_text(first.tflops)), left, py, 12, kSoft, 15);
  std::string rest = percent_of_roof(first);
  if (!rest.empty()) rest += " of its roof";
  if (!first.bound_by.empty()) rest += (rest.empty() ? "" : ", ") + first.bound_by;
  if (first.time_us > 0) rest += (rest.empty() ? "" : ";  ") + time_text(first.time_us * 1e-6);
  rest += (rest.empty() ? "" : ";  ") + std::string(to_string(first.origin));
  if (const std::string& why = scene_.missing[kernel.points[0]]; !why.empty()) rest += ";  not drawn: " + why;
  return draw_text(rest, left, py, 12, kSoft, 24);
}

double Drawing::draw_legend(double left, double py) {
  for (const Arrow& arrow : scene_.arrows) {
    if (std::max(scene_.kernel_of[arrow.from], scene_.kernel_of[arrow.to]) >= listed()) continue;
    const auto letter = [&](size_t i) { return scene_.kernels[scene_.kernel_of[i]].letter; };
    py = draw_text(fmt::format("{} \u2192 {}: {}", letter(arrow.from), letter(arrow.to), arrow.label), left, py, 12.5,
                   kSoft, 18);
  }
  if (const size_t more = scene_.kernels.size() - listed(); more > 0)
    py = draw_text(fmt::format("and {} more kernels, without letters", more), left, py, 12.5, kSoft, 18);
  py += 6;
  bool has[3] = {};
  for (const Point& point : roofline_.points) has[static_cast<int>(fill_of(point.origin))] = true;
  const std::pair<Fill, const char*> fills[] = {
      {Fill::kOpen, "model or simulated"}, {Fill::kHalf, "bytes from counters"}, {Fill::kFull, "measured"}};
  for (const auto& [fill, text] : fills) {
    if (!has[static_cast<int>(fill)]) continue;
    canvas_.marks.push_back({left + 8, py, 5.5, 0, fill, kSoft});
    py = draw_text(text, left + 22, py, 12, kSoft, 17);
  }
  py = draw_text("Roofs: dashed datasheet, solid measured or sustained", left, py, 12, kSoft, 17);
  // Roofs without room for a label in the plot.
  for (const RoofLine* roof : unlabelled_)
    py = draw_text(fmt::format("{}  {}  ({})", roof->name, roof->value, to_string(roof->origin)), left, py, 12, kSoft,
                   16);
  return py + 8;
}

/// The table of points beside the plot; the rest continues below the plot in columns.
void Drawing::draw_panel() {
  const size_t count = listed() + 1;
  const auto draw = [&](size_t i, double left, double py) {
    return i + 1 < count ? draw_entry(i, left, py) : draw_legend(left, py);
  };
  double side = canvas_.plot.top + 4;
  size_t next = 0;
  for (; next < count && (next == 0 || side < canvas_.plot.bottom - 50); ++next)
    side = draw(next, canvas_.plot.right + kGap, side);
  double below = std::max(canvas_.plot.bottom + kBelow, side);
  constexpr size_t kColumns = 3;
  constexpr double kMargin = 28;
  while (next < count) {
    const double top = below + 10;
    for (size_t column = 0; column < kColumns && next < count; ++column, ++next)
      below = std::max(below,
                       draw(next, kMargin + static_cast<double>(column) * (canvas_.width - kMargin) / kColumns, top));
  }
  canvas_.height = below;
}

Canvas Drawing::draw() {
  for (const RoofLine& roof : scene_.roofs)
    placement_.add_line(x(roof.ai0), y(roof.tflops0), x(roof.ai1), y(roof.tflops1), roof.is_slope ? 3 : 1);
  for (const RoofLine& roof : scene_.roofs)
    if (roof.ridge > scene_.frame.ai_min && roof.ridge < scene_.frame.ai_max)
      canvas_.marks.push_back({x(roof.ridge), y(roof.tflops0), 2.4, 0, Fill::kFull, kInk, owner_of(roof)});
  draw_points();
  for (const Arrow& arrow : scene_.arrows) draw_change(arrow);
  label_roofs();
  for (size_t i = 0; i < listed(); ++i) label_point(scene_.kernels[i]);
  for (const Change& change : changes_) label_change(change);
  for (const RoofLine& roof : scene_.roofs) label_ridge(roof);
  if (place_ == Place::kPage) return std::move(canvas_);
  draw_panel();
  draw_label(roofline_.title, canvas_.plot.left, 24, 18.5, kInk);
  double line = 48;
  for (const std::string& text : broken(roofline_.subtitle, kTitleColumns)) {
    draw_label(text, canvas_.plot.left, line, 12.5, kSoft);
    line += kTitleLine;
  }
  return std::move(canvas_);
}

}  // namespace

Canvas lay_out(const Roofline& roofline, const Scene& scene, Place place) {
  return Drawing(roofline, scene, place).draw();
}

std::string colour_of(const Scene& scene, const RoofLine& roof) {
  return roof.is_slope ? level_colour(scene, roof.level) : kInk;
}

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
