// A roofline as a gnuplot script. gnuplot draws the axes, the roofs and the files; canvas.h provides all other
// positions.
#include <fmt/format.h>

#include <cmath>

#include "base/subprocess.h"
#include "generator/jinja/jinja.h"
#include "roofline/plot/canvas.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot {

namespace {

/// For a single-quoted string and a comment. gnuplot's own way to write a quote, doubling it, fails at
/// the start of a string, so quotes become the sign that only looks like one.
std::string gnuplot_string(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c == '\'' || c == '`')
      out += "\u2019";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

std::string tics(double low, double high) {
  std::string out;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::ceil(std::log10(high)); ++power)
    for (int step = 1; step < 10; ++step) {
      const double value = step * std::pow(10, power);
      if (value < low * 0.999999 || value > high * 1.000001) continue;
      const std::string text = power > 4 || power < -3 ? fmt::format("1e{}", power) : number_text(value);
      out += fmt::format("{}'{}' {:.6g} {}", out.empty() ? "" : ", ", step == 1 ? text : "", value, step == 1 ? 0 : 1);
    }
  return out;
}

const char* style_of(Canvas::Segment::Kind kind) {
  switch (kind) {
    case Canvas::Segment::Kind::kHeadroom: return "head filled size screen 0.006,18 dashtype 3 linewidth 1.2";
    case Canvas::Segment::Kind::kLevels: return "nohead linewidth 0.8";
    case Canvas::Segment::Kind::kChange: return "head filled size screen 0.008,18 linewidth 1.6";
  }
  return "";
}

expr::Map make_scope(const Roofline& roofline, const Scene& scene, PlotFormat format) {
  const Canvas canvas = lay_out(roofline, scene);
  // gnuplot expects fractions of the canvas, with y upwards.
  const auto fx = [&](double px) { return std::round(1e5 * px / canvas.width) / 1e5; };
  const auto fy = [&](double py) { return std::round(1e5 * (1 - py / canvas.height)) / 1e5; };
  // gnuplot's svg terminal takes font sizes in pixels, its pngcairo terminal in points.
  const double points = format == PlotFormat::kSvg ? 4.0 / 3 : 1;
  expr::List roofs, arrows, shapes, labels;
  for (const RoofLine& roof : scene.roofs)
    roofs.push_back(expr::Map{{"name", gnuplot_string(roof.name)},
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
                              {"colour", colour_of(scene, roof)}});
  for (const Canvas::Segment& s : canvas.segments)
    arrows.push_back(expr::Map{{"x0", fx(s.x0)},
                               {"y0", fy(s.y0)},
                               {"x1", fx(s.x1)},
                               {"y1", fy(s.y1)},
                               {"style", style_of(s.kind)},
                               {"colour", s.colour}});
  for (const Canvas::Shape& shape : canvas.shapes) {
    std::string corners;
    for (const auto& [px, py] : shape.corners) corners += fmt::format("screen {},{} to ", fx(px), fy(py));
    corners += fmt::format("screen {},{}", fx(shape.corners[0].first), fy(shape.corners[0].second));
    shapes.push_back(expr::Map{{"corners", corners}, {"colour", shape.colour}, {"border", shape.border}});
  }
  for (const Canvas::Label& label : canvas.labels)
    labels.push_back(expr::Map{{"text", gnuplot_string(label.text)},
                               {"x", fx(label.x)},
                               {"y", fy(label.y)},
                               {"size", std::round(10 * label.size * points) / 10},
                               {"align", label.align},
                               {"colour", label.colour},
                               {"angle", std::round(100 * label.angle) / 100 + 0.0}});
  const Frame& frame = scene.frame;
  return {{"title", gnuplot_string(roofline.title)},
          {"terminal", format == PlotFormat::kSvg ? "svg" : "pngcairo"},
          {"font", std::round(10 * 10 * points) / 10},
          {"width", static_cast<int64_t>(std::ceil(canvas.width))},
          {"height", static_cast<int64_t>(std::ceil(canvas.height))},
          {"left", fx(canvas.plot.left)},
          {"right", fx(canvas.plot.right)},
          {"top", fy(canvas.plot.top)},
          {"bottom", fy(canvas.plot.bottom)},
          {"frame", expr::Map{{"ai_min", frame.ai_min},
                              {"ai_max", frame.ai_max},
                              {"tflops_min", frame.tflops_min},
                              {"tflops_max", frame.tflops_max}}},
          {"x_tics", tics(frame.ai_min, frame.ai_max)},
          {"y_tics", tics(frame.tflops_min, frame.tflops_max)},
          {"x_title", gnuplot_string(scene.ai_title)},
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
              jinja::render(loader, "plots/roofline.gp.jinja", make_scope(roofline, scene, format)));
  return std::move(rendered.text);
}

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

Error failed(const std::string& path, const std::string& why) {
  return Error{.message = "the plot cannot be written: " + why, .where = {path}};
}

}  // namespace

Result<void> write_plot(const Roofline& roofline, PlotFormat format, const std::string& path, const Outputs& outputs,
                        const DataFiles& files) {
  ROOFGEN_TRY(const std::string script, gnuplot_script(roofline, format, files));
  if (find_program("", "gnuplot", {}).empty())
    return Error{.exit = Exit::kUnavailable,
                 .message = "gnuplot was not found, which draws SVG and PNG: install the package gnuplot-nox"};
  // -d: without the user's start-up files.
  ROOFGEN_TRY(
      const ProcessResult drawn,
      run_process({.argv = {"gnuplot", "-d"}, .input = script, .timeout_s = kTimeLimitS, .most_output = 64 << 20}));
  if (drawn.timed_out) return failed(path, fmt::format("gnuplot did not end within {:.0f} s", kTimeLimitS));
  if (!drawn.ok() || drawn.out.empty()) {
    const std::string words = last_words(drawn.err);
    return failed(path, "gnuplot failed" + (words.empty() ? "" : ": " + words));
  }
  return outputs.write(path, drawn.out);
}

}  // namespace roofgen::plot
