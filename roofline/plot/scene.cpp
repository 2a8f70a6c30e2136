#include "roofline/plot/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofgen::plot {

namespace {

/// A range of more decades comes from one absurd point and hides the others; with fewer decades, a plot of one or two
/// points shows none of the surrounding roofs.
constexpr double kMaxDecades = 10, kMinAiDecades = 3, kMinTflopsDecades = 2;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

/// The nearest value of the form 1, 2 or 5 times a power of ten that is at most (`down`) or at least `value`.
double snap(double value, bool down) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  double best = down ? decade : 10 * decade;
  for (double step : {1.0, 2.0, 5.0, 10.0}) {
    const double candidate = step * decade;
    if (down && candidate <= value * (1 + 1e-9)) best = std::max(best, candidate);
    if (!down && candidate >= value * (1 - 1e-9)) best = std::min(best, candidate);
  }
  return best;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void add(double value) {
    if (!is_positive(value)) return;
    value = std::clamp(value, 1e-30, 1e30);  // products of larger values overflow
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return high == 0; }
};

double tb_s(const Slope& slope) { return slope.gb_s / 1000; }

/// Reached in practice, in contrast to a datasheet value.
template <class Roof>
bool is_solid(const Roof& roof) {
  return roof.sustained || roof.origin == Origin::kMeasured;
}

/// The slope at which a ceiling begins: of its level, preferably of its own kind (datasheet or not), then the fastest.
const Slope* slope_under(const Roofline& roofline, const Ceiling& ceiling) {
  const Slope* best = nullptr;
  const auto same_kind = [&](const Slope& slope) { return is_solid(slope) == is_solid(ceiling); };
  for (const Slope& slope : roofline.slopes) {
    if (slope.level != ceiling.under || !is_positive(slope.gb_s)) continue;
    if (!best || same_kind(slope) > same_kind(*best) ||
        (same_kind(slope) == same_kind(*best) && slope.gb_s > best->gb_s))
      best = &slope;
  }
  return best;
}

Frame make_frame(const Roofline& roofline) {
  Extent ai, tflops, ceilings;
  for (const Point& point : roofline.points) {
    if (!is_positive(point.ai) || !is_positive(point.tflops)) continue;
    ai.add(point.ai);
    tflops.add(point.tflops);
    tflops.add(point.roof_tflops);
  }
  for (const Ceiling& ceiling : roofline.ceilings) {
    ceilings.add(ceiling.tflops);
    tflops.add(ceiling.tflops);
    if (const Slope* slope = slope_under(roofline, ceiling)) ai.add(ceiling.tflops / tb_s(*slope));
  }
  // Each slope shows at least half a decade below the lowest ceiling.
  for (const Slope& slope : roofline.slopes) {
    if (!is_positive(slope.gb_s)) continue;
    if (ceilings.empty()) {
      if (!ai.empty()) tflops.add(tb_s(slope) * ai.high);
    } else {
      ai.add(ceilings.low / tb_s(slope) / 3);
      tflops.add(ceilings.low / 10);
    }
  }
  Frame frame;
  if (!ai.empty()) {
    frame.ai_min = snap(ai.low / 1.5, true);
    frame.ai_max = snap(ai.high * 5, false);  // room for the ceilings' names
  }
  if (!tflops.empty()) {
    frame.tflops_min = snap(tflops.low / 1.5, true);
    frame.tflops_max = snap(tflops.high * 1.5, false);
  }
  frame.ai_min = std::max(frame.ai_min, frame.ai_max / std::pow(10, kMaxDecades));
  frame.tflops_min = std::max(frame.tflops_min, frame.tflops_max / std::pow(10, kMaxDecades));
  frame.ai_min = std::min(frame.ai_min, frame.ai_max / std::pow(10, kMinAiDecades));
  frame.tflops_min = std::min(frame.tflops_min, frame.tflops_max / std::pow(10, kMinTflopsDecades));
  return frame;
}

std::string letter(size_t index) {
  std::string text;
  for (size_t rest = index + 1; rest > 0; rest = (rest - 1) / 26)
    text.insert(text.begin(), static_cast<char>('A' + (rest - 1) % 26));
  return text;
}

/// Distance from the cores. Traffic of known levels is compared from the innermost level outwards.
int depth(const std::string& level) {
  if (level == "DRAM") return 3;
  if (level == "L2") return 2;
  return 1;
}

/// Users take "AI at L2 is below AI at DRAM" for a mistake (ROCm/rocprofiler-compute#690). It is normal, so a note
/// explains each step between two levels.
std::string level_note(const Roofline& roofline, const Kernel& kernel) {
  std::vector<const Point*> points;
  for (size_t i : kernel.points)
    if (is_positive(roofline.points[i].ai)) points.push_back(&roofline.points[i]);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point* a, const Point* b) { return depth(a->level) < depth(b->level); });
  std::string note;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &inner = *points[i - 1], &outer = *points[i];
    if (inner.level == outer.level) continue;
    if (!note.empty()) note += ' ';
    const double ratio = inner.ai / outer.ai;  // = bytes of the outer level / bytes of the inner one
    if (ratio < 0.995)
      note += fmt::format("AI at {} is below AI at {}: of each byte {} serves, {} moves only {}; the rest is reused.",
                          inner.level, outer.level, inner.level, outer.level, number_text(ratio));
    else if (ratio > 1.005)
      note += fmt::format(
          "AI at {} is above AI at {}: {} moves {} bytes for each byte asked of {}: whole sectors for parts "
          "of them, write-backs, or data that goes around {}.",
          inner.level, outer.level, outer.level, number_text(ratio), inner.level, inner.level);
    else
      note += fmt::format("AI at {} equals AI at {}: {} reuses nothing.", inner.level, outer.level, inner.level);
  }
  return note;
}

std::string bandwidth_text(double gb_s) {
  return gb_s >= 9999.5 ? number_text(gb_s / 1000) + " TB/s" : fmt::format("{:.0f} GB/s", gb_s);
}

void add_roofs(const Roofline& roofline, Scene& scene) {
  const Frame& frame = scene.frame;
  double top = 0, fastest = 0;
  for (const Ceiling& ceiling : roofline.ceilings)
    if (is_positive(ceiling.tflops)) top = std::max(top, ceiling.tflops);
  if (top == 0) top = frame.tflops_max;
  for (const Slope& slope : roofline.slopes) {
    if (!is_positive(slope.gb_s)) continue;
    fastest = std::max(fastest, tb_s(slope));
    RoofLine line{.name = slope.level,
                  .value = bandwidth_text(slope.gb_s),
                  .level = slope.level,
                  .is_slope = true,
                  .solid = is_solid(slope),
                  .origin = slope.origin};
    line.ai0 = std::max(frame.ai_min, frame.tflops_min / tb_s(slope));
    line.ai1 = std::min(frame.ai_max, top / tb_s(slope));
    line.tflops0 = line.ai0 * tb_s(slope);
    line.tflops1 = line.ai1 * tb_s(slope);
    if (line.ai0 < line.ai1) scene.roofs.push_back(std::move(line));
  }
  for (const Ceiling& ceiling : roofline.ceilings) {
    if (!is_positive(ceiling.tflops)) continue;
    RoofLine line{.name = ceiling.name,
                  .value = number_text(ceiling.tflops) + " TFLOP/s",
                  .level = ceiling.under,
                  .solid = is_solid(ceiling),
                  .origin = ceiling.origin};
    if (const Slope* slope = slope_under(roofline, ceiling)) line.ridge = ceiling.tflops / tb_s(*slope);
    line.ai0 = std::clamp(line.ridge, frame.ai_min, frame.ai_max);
    line.ai1 = frame.ai_max;
    line.tflops0 = line.tflops1 = ceiling.tflops;
    if (fastest > 0 && ceiling.tflops / fastest < line.ridge * 0.999)
      line.reach_ai = std::max(frame.ai_min, ceiling.tflops / fastest);
    scene.roofs.push_back(std::move(line));
  }
}

}  // namespace

double Frame::ai_decades() const { return std::log10(ai_max / ai_min); }
double Frame::tflops_decades() const { return std::log10(tflops_max / tflops_min); }
double Frame::across(double ai) const { return std::log10(ai / ai_min) / ai_decades(); }
double Frame::up(double tflops) const { return std::log10(tflops / tflops_min) / tflops_decades(); }
bool Frame::contains(double ai, double tflops) const {
  return ai >= ai_min && ai <= ai_max && tflops >= tflops_min && tflops <= tflops_max;
}

Scene make_scene(const Roofline& roofline) {
  Scene scene;
  scene.frame = make_frame(roofline);
  add_roofs(roofline, scene);
  const auto add_level = [&](const std::string& level) {
    if (std::find(scene.levels.begin(), scene.levels.end(), level) == scene.levels.end()) scene.levels.push_back(level);
  };
  for (const Slope& slope : roofline.slopes) add_level(slope.level);
  for (size_t i = 0; i < roofline.points.size(); ++i) {
    const Point& point = roofline.points[i];
    add_level(point.level);
    auto kernel = std::find_if(scene.kernels.begin(), scene.kernels.end(),
                               [&](const Kernel& known) { return known.name == point.name; });
    if (kernel == scene.kernels.end())
      kernel = scene.kernels.insert(kernel, {letter(scene.kernels.size()), point.name, {}, {}});
    kernel->points.push_back(i);
    scene.kernel_of.push_back(static_cast<size_t>(kernel - scene.kernels.begin()));
    scene.missing.push_back(!is_positive(point.ai) || !is_positive(point.tflops)
                                ? "no FLOPs or no bytes: no place on a log axis"
                            : !scene.frame.contains(point.ai, point.tflops) ? "outside the axes"
                                                                            : "");
  }
  const bool several = std::any_of(roofline.points.begin(), roofline.points.end(),
                                   [&](const Point& point) { return point.level != roofline.points[0].level; });
  scene.ai_title =
      fmt::format("Arithmetic intensity [FLOP/byte, {}]", several                    ? "of each level"
                                                          : !roofline.points.empty() ? roofline.points[0].level
                                                                                     : "DRAM");
  const auto is_drawn = [&](size_t i) { return i < scene.missing.size() && scene.missing[i].empty(); };
  for (const Arrow& arrow : roofline.arrows)
    if (is_drawn(arrow.from) && is_drawn(arrow.to)) scene.arrows.push_back(arrow);
  for (Kernel& kernel : scene.kernels) kernel.note = level_note(roofline, kernel);
  return scene;
}

Fill fill_of(Origin origin) {
  return origin == Origin::kMeasured ? Fill::kFull : origin == Origin::kCounter ? Fill::kHalf : Fill::kOpen;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (size != 0 && (size < 0.00095 || size >= 99999.5)) return fmt::format("{:.3g}", value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{:.{}f}", value,
                                 size >= 9.995      ? 1
                                 : size >= 0.9995   ? 2
                                 : size >= 0.09995  ? 3
                                 : size >= 0.009995 ? 4
                                                    : 5);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string percent_of_roof(const Point& point) {
  if (!is_positive(point.roof_tflops) || !std::isfinite(point.tflops)) return "";
  const double percent = 100 * point.tflops / point.roof_tflops;
  return fmt::format("{:.{}f}%", percent, percent < 9.95 ? 1 : 0);
}

}  // namespace roofgen::plot
