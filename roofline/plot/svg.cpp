// A roofline as SVG: one drawing for files and pages. Colours are classes, so that a page can draw itself dark, and
// parts name the kernels, points and roofs they belong to, so that a page can hide them (templates/plots/roofline.js).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "base/csv.h"
#include "base/subprocess.h"
#include "roofline/plot/canvas.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot {

namespace {

/// Light. A page's own style sheet overrides the colours.
constexpr std::string_view kStyle = R"(<style>
.figure { font-family: "DejaVu Sans", sans-serif; }
.figure .ink { color: #16181d } .figure .soft { color: #5c6370 } .figure .faint { color: #8b93a1 }
.figure .c0 { color: #2166c4 } .figure .c1 { color: #d1600f } .figure .c2 { color: #7a3fc2 }
.figure .c3 { color: #0c8a6a } .figure .c4 { color: #c2305e } .figure .c5 { color: #8a6d00 }
.figure .c6 { color: #4b5563 } .figure .grid { color: #e3e6eb } .figure .minor { color: #f0f2f5 }
.figure .card { color: #ffffff }
.figure line, .figure use { stroke: currentColor } .figure use { stroke-width: inherit }
.figure text { fill: currentColor; stroke: #ffffff; stroke-width: 3; stroke-linejoin: round; paint-order: stroke }
</style>
)";

/// A kernel's shape, corners on a circle of radius `scale` from the angle `start` on, in degrees.
struct Shape {
  int corners;
  double start, scale;
};
constexpr Shape kShapes[] = {{24, 0, 1},    {4, 45, 1.24},  {3, -90, 1.15}, {4, -90, 1.18},
                             {3, 90, 1.15}, {5, -90, 1.08}, {6, 0, 1.05}};

using Corners = std::vector<std::pair<double, double>>;

Corners corners_of(const Shape& s) {
  Corners corners;
  for (int i = 0; i < s.corners; ++i) {
    const double angle = (s.start + 360.0 * i / s.corners) * std::numbers::pi / 180;
    corners.push_back({s.scale * std::cos(angle), s.scale * std::sin(angle)});
  }
  return corners;
}

/// The part of a convex shape to the left of its centre.
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

std::string path(const Corners& corners) {
  std::string out;
  for (const auto& [x, y] : corners) out += fmt::format("{}{:.3f} {:.3f}", out.empty() ? 'M' : 'L', x, y);
  return out + 'Z';
}

/// For an element or an attribute; what XML cannot contain becomes a blank or U+FFFD.
std::string xml_text(std::string_view text) {
  std::string out;
  for (size_t i = 0, length = 1; i < text.size(); i += std::max<size_t>(length, 1)) {
    length = utf8_length(text.substr(i));
    const char c = text[i];
    if (length == 0)
      out += "\uFFFD";
    else if (length > 1)
      out += text.substr(i, length);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return out;
}

class Svg {
 public:
  Svg(const Roofline& roofline, Place place)
      : scene_(make_scene(roofline)),
        canvas_(lay_out(roofline, scene_, place)),
        place_(place),
        title_(roofline.title) {}
  std::string draw();

 private:
  double x(double ai) const {
    return canvas_.plot.left + scene_.frame.across(ai) * (canvas_.plot.right - canvas_.plot.left);
  }
  double y(double tflops) const {
    return canvas_.plot.bottom - scene_.frame.up(tflops) * (canvas_.plot.bottom - canvas_.plot.top);
  }
  static std::string attributes(const Owner& owner) {
    std::string out;
    if (!owner.kernels.empty()) out = fmt::format(" data-kernels=\"{}\"", fmt::join(owner.kernels, " "));
    if (owner.roof) out += fmt::format(" data-roof=\"{}\"", *owner.roof);
    return out;
  }
  void line(double x0, double y0, double x1, double y1, std::string_view colour, double width,
            const std::string& more = {}) {
    out_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"{}\"{}/>\n", colour,
        x0, y0, x1, y1, width, more);
  }
  void text(const std::string& words, double px, double py, double size, std::string_view colour,
            const std::string& more) {
    out_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" dy=\"0.35em\" font-size=\"{}\"{}>{}</text>\n",
                        colour, px, py, size, more, xml_text(words));
  }
  void draw_axis(double low, double high, bool horizontal);
  void draw_roof(size_t index);
  void draw(const Canvas::Segment& s);
  void draw(const Canvas::Mark& mark);
  void draw(const Canvas::Label& label);

  const Scene scene_;
  const Canvas canvas_;
  const Place place_;
  const std::string title_;
  std::string out_;
};

/// Lines at 1 to 9 times each power of ten; a power has a strong line and a number.
void Svg::draw_axis(double low, double high, bool horizontal) {
  const Box& plot = canvas_.plot;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::ceil(std::log10(high)); ++power)
    for (int step = 1; step < 10; ++step) {
      const double value = step * std::pow(10, power);
      if (value < low * 0.999999 || value > high * 1.000001) continue;
      const char* const colour = step == 1 ? "grid" : "minor";
      const std::string number = power > 4 || power < -3 ? fmt::format("1e{}", power) : number_text(value);
      if (horizontal) {
        line(x(value), plot.top, x(value), plot.bottom, colour, 1);
        if (step == 1) text(number, x(value), plot.bottom + 16, 12.5, "soft", " text-anchor=\"middle\"");
      } else {
        line(plot.left, y(value), plot.right, y(value), colour, 1);
        if (step == 1) text(number, plot.left - 8, y(value), 12.5, "soft", " text-anchor=\"end\"");
      }
    }
}

void Svg::draw_roof(size_t index) {
  const RoofLine& roof = scene_.roofs[index];
  const std::string owner = attributes({.roof = index});
  const std::string dotted = " stroke-dasharray=\"1.5 4\"" + owner;
  if (roof.ridge > 0) line(x(roof.ridge), canvas_.plot.bottom, x(roof.ridge), y(roof.tflops0), "faint", 1, dotted);
  if (roof.reach_ai > 0)  // where only the faster levels of memory lead
    line(x(roof.reach_ai), y(roof.tflops0), x(roof.ridge), y(roof.tflops0), "faint", 1, dotted);
  line(x(roof.ai0), y(roof.tflops0), x(roof.ai1), y(roof.tflops1), colour_of(scene_, roof), roof.is_slope ? 2.2 : 1.8,
       (roof.solid ? "" : " stroke-dasharray=\"8 4\"") + owner);
}

void Svg::draw(const Canvas::Segment& s) {
  using Kind = Canvas::Segment::Kind;
  const char* const style = s.kind == Kind::kHeadroom ? " stroke-dasharray=\"2 3\" marker-end=\"url(#head)\""
                            : s.kind == Kind::kChange ? " marker-end=\"url(#head)\""
                                                      : "";
  line(s.x0, s.y0, s.x1, s.y1, s.colour, s.kind == Kind::kLevels ? 1 : 1.5, style + attributes(s.owner));
}

void Svg::draw(const Canvas::Mark& mark) {
  const size_t shape = mark.shape % std::size(kShapes);
  out_ += fmt::format("<g transform=\"translate({:.1f} {:.1f}) scale({:.2f})\" stroke-width=\"{:.3f}\"{}{}>", mark.x,
                      mark.y, mark.radius, 1.8 / mark.radius, attributes(mark.owner),
                      mark.point ? fmt::format(" data-point=\"{}\"", *mark.point) : "");
  if (mark.fill != Fill::kFull) out_ += fmt::format("<use class=\"card\" href=\"#s{}\"/>", shape);
  if (mark.fill == Fill::kHalf) out_ += fmt::format("<use class=\"{}\" href=\"#h{}\"/>", mark.colour, shape);
  out_ += fmt::format("<use class=\"{}\" href=\"#s{}\"{}/></g>\n", mark.colour, shape,
                      mark.fill == Fill::kFull ? "" : " fill-opacity=\"0\"");
}

void Svg::draw(const Canvas::Label& label) {
  std::string more = label.centred ? " text-anchor=\"middle\"" : "";
  if (label.width > 0) more += fmt::format(" textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\"", label.width);
  if (label.angle != 0)
    more += fmt::format(" transform=\"rotate({:.2f} {:.1f} {:.1f})\"", label.angle, label.x, label.y);
  text(label.text, label.x, label.y, label.size, label.colour, more + attributes(label.owner));
}

std::string Svg::draw() {
  const Box& plot = canvas_.plot;
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}<defs>\n",
      std::ceil(canvas_.width), std::ceil(canvas_.height), xml_text(title_), kStyle);
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    const Corners corners = corners_of(kShapes[i]);
    out_ += fmt::format(
        "<path id=\"s{0}\" fill=\"currentColor\" d=\"{1}\"/><path id=\"h{0}\" fill=\"currentColor\" d=\"{2}\"/>\n", i,
        path(corners), path(left_half(corners)));
  }
  out_ +=
      "<marker id=\"head\" viewBox=\"-8 -4 8 8\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
      "orient=\"auto\"><path d=\"M0 0L-8 -3.4L-8 3.4Z\" fill=\"#5c6370\"/></marker>\n</defs>\n";
  if (place_ == Place::kFile) out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  const Frame& frame = scene_.frame;
  draw_axis(frame.ai_min, frame.ai_max, true);
  draw_axis(frame.tflops_min, frame.tflops_max, false);
  text(scene_.ai_title, (plot.left + plot.right) / 2, plot.bottom + 42, 13.5, "soft", " text-anchor=\"middle\"");
  const double middle = (plot.top + plot.bottom) / 2;
  text("TFLOP/s", 22, middle, 13.5, "soft",
       fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 22 {})\"", middle));
  for (size_t i = 0; i < scene_.roofs.size(); ++i) draw_roof(i);
  for (const Canvas::Segment& segment : canvas_.segments) draw(segment);
  for (const Canvas::Mark& mark : canvas_.marks) draw(mark);
  for (const Canvas::Label& label : canvas_.labels) draw(label);
  return out_ + "</svg>\n";
}

}  // namespace

std::string svg(const Roofline& roofline, Place place) { return Svg(roofline, place).draw(); }

namespace {

constexpr double kTimeLimitS = 120;

/// The end of `text` on one line.
std::string last_words(std::string_view text) {
  constexpr size_t kMost = 600;
  std::string line;
  for (const char c : text.substr(text.size() - std::min(text.size(), kMost))) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

Result<std::string> png(const std::string& svg) {
  if (find_program("", "rsvg-convert", {}).empty())
    return Error{Exit::kUnavailable,
                 "rsvg-convert was not found, which turns SVG into PNG: install the package librsvg2-bin"};
  ROOFGEN_TRY(ProcessResult drawn, run_process({.argv = {"rsvg-convert", "--unlimited", "--format", "png"},
                                                .input = svg,
                                                .timeout_s = kTimeLimitS,
                                                .most_output = 64 << 20}));
  if (drawn.timed_out) return Error{.message = fmt::format("rsvg-convert did not end within {:.0f} s", kTimeLimitS)};
  if (drawn.ok() && !drawn.out.empty()) return std::move(drawn.out);
  const std::string words = last_words(drawn.err);
  return Error{.message = "rsvg-convert failed" + (words.empty() ? "" : ": " + words)};
}

}  // namespace roofgen::plot
