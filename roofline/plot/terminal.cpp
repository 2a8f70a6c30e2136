// The roofline in characters. A character cell is about twice as high as wide, so a decade takes half as many rows as
// columns and slopes are diagonal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/units.h"
#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"
#include "roofline/plot/text.h"

namespace roofgen::plot {

namespace {

constexpr int kMaxPlotWidth = 140, kMinRows = 10, kMaxRows = 40;
constexpr int kAxisColumns = 7;  ///< "  1000 |"
constexpr const char* kLevelStyles[] = {"34", "33", "35", "36", "32"};

struct Cell {
  std::string glyph = " ";
  std::string style;
  int weight = 0;  ///< 0 nothing, 1 grid, 2 a roof, 3 a label, 4 a mark
};

class Canvas {
 public:
  Canvas(const Frame& frame, int width, int rows)
      : frame_(frame), width_(width), rows_(rows), cells_(static_cast<size_t>(width) * rows) {}
  int width() const { return width_; }
  int rows() const { return rows_; }
  int column(double ai) const { return static_cast<int>(std::lround(frame_.across(ai) * (width_ - 1))); }
  /// Rows count from the top.
  int row(double tflops) const { return static_cast<int>(std::lround((1 - frame_.up(tflops)) * (rows_ - 1))); }
  bool inside(int column, int row) const { return column >= 0 && column < width_ && row >= 0 && row < rows_; }
  Cell& at(int column, int row) { return cells_[static_cast<size_t>(row) * width_ + column]; }

  void set(int column, int row, const std::string& glyph, int weight, const std::string& style = {}) {
    if (inside(column, row) && at(column, row).weight <= weight) at(column, row) = {glyph, style, weight};
  }
  /// Whether the text fits there, hides nothing of a weight above `over` and leaves a blank before the next text.
  bool is_free(int column, int row, int length, int over) {
    if (!inside(column, row) || !inside(column + length - 1, row)) return false;
    for (int i = 0; i < length; ++i)
      if (at(column + i, row).weight > over) return false;
    return (!inside(column - 1, row) || at(column - 1, row).weight != 3) &&
           (!inside(column + length, row) || at(column + length, row).weight != 3);
  }
  void write(int column, int row, const std::string& text, const std::string& style) {
    for (size_t i = 0; i < text.size(); ++i) set(column + static_cast<int>(i), row, std::string(1, text[i]), 3, style);
  }

 private:
  const Frame& frame_;
  int width_, rows_;
  std::vector<Cell> cells_;
};

std::string level_style(const Scene& scene, const std::string& level, bool color) {
  if (!color) return "";
  const size_t i = std::find(scene.levels.begin(), scene.levels.end(), level) - scene.levels.begin();
  return kLevelStyles[i % std::size(kLevelStyles)];
}

void draw_roof(Canvas& canvas, const Scene& scene, const RoofLine& roof, bool color) {
  const Frame& frame = scene.frame;
  const int first = canvas.column(roof.ai0), last = canvas.column(roof.ai1);
  if (!roof.is_slope) {
    const int row = canvas.row(roof.tflops0);
    for (int x = first; x <= last; ++x) canvas.set(x, row, roof.solid ? "\u2500" : "\u2504", 2);
    if (roof.ridge > 0) canvas.set(first, row, "\u256d", 2);
    return;
  }
  // One glyph per row, at the column where the slope crosses the row's middle.
  const double tb_s = roof.tflops0 / roof.ai0;
  for (int y = canvas.row(roof.tflops0); y > canvas.row(roof.tflops1); --y) {
    const double up = 1 - static_cast<double>(y) / (canvas.rows() - 1);
    const double ai = frame.tflops_min * std::pow(10, up * frame.tflops_decades()) / tb_s;
    const int x = canvas.column(std::clamp(ai, frame.ai_min, frame.ai_max));
    canvas.set(x, y, roof.solid ? "\u2571" : "/", 2, level_style(scene, roof.level, color));
  }
}

/// The available width decides between "BF16 tensor 312 TFLOP/s" and the name alone; the list of roofs has every value.
void label_roof(Canvas& canvas, const Scene& scene, const RoofLine& roof, bool color) {
  const std::string style = roof.is_slope ? level_style(scene, roof.level, color) : "";
  const std::string name = ascii(roof.name);
  for (const std::string& text : {name + " " + roof.value, name}) {
    const int length = static_cast<int>(text.size());
    if (!roof.is_slope) {
      const int row = canvas.row(roof.tflops0), right = canvas.width() - length;
      const int elbow = canvas.column(roof.ai0);
      for (int above : {-1, 1})
        for (int x = right; x >= std::max(0, std::min(elbow, right)); --x)
          if (canvas.is_free(x, row + above, length, 1)) return canvas.write(x, row + above, text, style);
      // Without room beside the line, the label interrupts the line.
      for (int x = right - 1; x > elbow + 1; --x)
        if (canvas.is_free(x - 1, row, length + 2, 2)) return canvas.write(x - 1, row, " " + text + " ", style);
      continue;
    }
    // First to the left of a slope, from a third of its height upwards, then to its right.
    const int low = canvas.row(roof.tflops0), high = canvas.row(roof.tflops1);
    std::vector<int> rows;
    for (int y = high + 1; y < low; ++y) rows.push_back(y);
    std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) {
      const double wanted = high + 0.6 * (low - high);
      return std::fabs(a - wanted) < std::fabs(b - wanted);
    });
    for (bool left : {true, false})
      for (int y : rows) {
        const double up = 1 - static_cast<double>(y) / (canvas.rows() - 1);
        const double ai =
            scene.frame.tflops_min * std::pow(10, up * scene.frame.tflops_decades()) / (roof.tflops0 / roof.ai0);
        const int x = left ? canvas.column(ai) - length - 1 : canvas.column(ai) + 2;
        if (canvas.is_free(x, y, length, 1)) return canvas.write(x, y, text, style);
      }
  }
}

/// Letters as marks. A letter that would hide another moves to the next free cell on its right.
void draw_points(Canvas& canvas, const Scene& scene, const Roofline& roofline, bool color) {
  for (size_t i = 0; i < roofline.points.size(); ++i) {
    if (!scene.missing[i].empty()) continue;
    const Point& point = roofline.points[i];
    std::string mark = scene.kernels[scene.kernel_of[i]].letter;
    if (fill_of(point.origin) == Fill::kOpen)
      for (char& c : mark) c = static_cast<char>(c - 'A' + 'a');
    const std::string style = color ? "1;" + level_style(scene, point.level, color) : "";
    int x = canvas.column(point.ai);
    const int y = canvas.row(point.tflops), length = static_cast<int>(mark.size());
    x = std::min(x, canvas.width() - length);
    while (x + length < canvas.width() && !canvas.is_free(x, y, length, 3)) ++x;
    for (int n = 0; n < length; ++n) canvas.set(x + n, y, std::string(1, mark[n]), 4, style);
  }
}

std::string decade_text(int power) {
  if (power > 4 || power < -3) return fmt::format("1e{}", power);
  return number_text(std::pow(10, power));
}

std::string draw(const Scene& scene, const Roofline& roofline, int width, bool color) {
  const Frame& frame = scene.frame;
  const int columns_free = std::min(width, kMaxPlotWidth) - kAxisColumns - 1;
  const int rows =
      std::clamp(static_cast<int>(std::lround(columns_free / frame.ai_decades() * frame.tflops_decades() / 2)),
                 kMinRows, kMaxRows);
  Canvas canvas(frame, columns_free, rows);
  std::vector<std::pair<int, int>> y_ticks;  // row, power
  for (int power = static_cast<int>(std::ceil(std::log10(frame.tflops_min) - 1e-9));
       power <= std::log10(frame.tflops_max) + 1e-9; ++power)
    y_ticks.push_back({canvas.row(std::pow(10, power)), power});
  for (const RoofLine& roof : scene.roofs)
    if (roof.is_slope) draw_roof(canvas, scene, roof, color);
  for (const RoofLine& roof : scene.roofs)
    if (!roof.is_slope) draw_roof(canvas, scene, roof, color);
  draw_points(canvas, scene, roofline, color);
  for (const RoofLine& roof : scene.roofs) label_roof(canvas, scene, roof, color);

  std::string out = " TFLOP/s\n";
  for (int y = 0; y < rows; ++y) {
    const auto tick = std::find_if(y_ticks.begin(), y_ticks.end(), [&](const auto& t) { return t.first == y; });
    std::string line = tick == y_ticks.end()
                           ? std::string(kAxisColumns, ' ') + "\u2502"
                           : fmt::format("{:>{}} \u2524", decade_text(tick->second), kAxisColumns - 1);
    int last = canvas.width() - 1;
    while (last >= 0 && canvas.at(last, y).glyph == " ") --last;
    for (int x = 0; x <= last;) {  // one escape sequence for each run of equal style
      const std::string style = canvas.at(x, y).style;
      std::string run;
      for (; x <= last && canvas.at(x, y).style == style; ++x) run += canvas.at(x, y).glyph;
      line += styled(run, style);
    }
    out += line + "\n";
  }
  std::string axis = std::string(kAxisColumns, ' ') + "\u2514", labels(kAxisColumns + 1, ' ');
  std::vector<int> x_ticks(columns_free, 0);
  for (int power = static_cast<int>(std::ceil(std::log10(frame.ai_min) - 1e-9));
       power <= std::log10(frame.ai_max) + 1e-9; ++power) {
    const int x = canvas.column(std::pow(10, power));
    x_ticks[x] = 1;
    const std::string text = decade_text(power);
    const int from =
        kAxisColumns + 1 +
        std::min(std::max(0, x - static_cast<int>(text.size()) / 2), columns_free - static_cast<int>(text.size()));
    if (static_cast<int>(labels.size()) > from && from > kAxisColumns + 1) continue;  // no room
    labels.resize(from, ' ');
    labels += text;
  }
  for (int tick : x_ticks) axis += tick ? "\u252c" : "\u2500";
  out += axis + "\n" + labels + "\n" + paragraph(ascii(scene.ai_title), width, kAxisColumns + 1);
  return out;
}

std::string points_table(const Scene& scene, const Roofline& roofline, int width) {
  bool times = false, levels = false, shares = false;
  for (const Point& point : roofline.points) {
    times |= point.time_us > 0;
    shares |= point.share > 0;
    levels |= point.level != "DRAM";
  }
  std::vector<Column> head = {{""}, {"name"}};
  if (levels) head.push_back({"level"});
  head.insert(head.end(), {{"AI", true}, {"TFLOP/s", true}, {"of roof", true}, {"bound by"}});
  if (times) head.push_back({"time", true});
  if (shares) head.push_back({"share", true});
  head.push_back({"origin"});
  std::vector<std::vector<std::string>> rows;
  for (const Kernel& kernel : scene.kernels)
    for (size_t i : kernel.points) {
      const Point& point = roofline.points[i];
      const bool is_first = i == kernel.points.front();
      std::vector<std::string> row = {is_first ? kernel.letter : "", is_first ? point.name : ""};
      if (levels) row.push_back(point.level);
      row.insert(row.end(), {number_text(point.ai), number_text(point.tflops), percent_of_roof(point), point.bound_by});
      if (times) row.push_back(point.time_us > 0 ? time_text(point.time_us * 1e-6) : "");
      if (shares) row.push_back(point.share > 0 ? fmt::format("{:.0f}%", 100 * point.share) : "");
      row.push_back(to_string(point.origin));
      rows.push_back(std::move(row));
    }
  return text_table(head, rows, width);
}

std::string legend(const Scene& scene, const Roofline& roofline, int width) {
  std::string out;
  std::string marks;
  const auto has = [&](Fill fill) {
    return std::any_of(roofline.points.begin(), roofline.points.end(),
                       [&](const Point& point) { return fill_of(point.origin) == fill; });
  };
  if (has(Fill::kOpen)) marks += "a: model or simulated. ";
  if (has(Fill::kHalf)) marks += "A: bytes from counters (origin \"counter\"). ";
  if (has(Fill::kFull)) marks += "A: measured. ";
  if (!scene.roofs.empty()) marks += "\u2500\u2571 measured or sustained; \u2504/ datasheet. ";
  for (const std::string& line : wrap(marks, width)) out += line + "\n";
  std::vector<std::vector<std::string>> rows;
  for (const RoofLine& roof : scene.roofs)
    rows.push_back({roof.name, roof.value, roof.ridge > 0 ? number_text(roof.ridge) : "", to_string(roof.origin)});
  if (!rows.empty()) out += "\n" + text_table({{"roof"}, {"value", true}, {"ridge", true}, {"origin"}}, rows, width);
  for (const Arrow& arrow : scene.arrows) {
    const auto name = [&](size_t i) { return scene.kernels[scene.kernel_of[i]].letter; };
    out += paragraph(fmt::format("{} -> {}: {}", name(arrow.from), name(arrow.to), ascii(arrow.label)), width);
  }
  for (size_t i = 0; i < roofline.points.size(); ++i)
    if (!scene.missing[i].empty())
      out += paragraph(
          fmt::format("{} is not on the plot: {}.", scene.kernels[scene.kernel_of[i]].letter, scene.missing[i]), width);
  for (const Kernel& kernel : scene.kernels)
    if (!kernel.note.empty()) out += paragraph(kernel.letter + ": " + ascii(kernel.note), width);
  return out;
}

}  // namespace

std::string terminal_text(const Roofline& roofline, int width, bool color) {
  width = std::max(width, kMinWidth);
  const Scene scene = make_scene(roofline);
  std::string out = paragraph(ascii(roofline.title), width) + paragraph(ascii(roofline.subtitle), width) + "\n";
  if (!roofline.points.empty()) out += points_table(scene, roofline, width) + "\n";
  return out + draw(scene, roofline, width, color) + "\n" + legend(scene, roofline, width);
}

// The other figures in a terminal: grids and tables of numbers.

namespace {

std::string heading(const std::string& title, int width) {
  return title.empty() ? "" : paragraph(ascii(title), width) + "\n";
}

}  // namespace

std::string terminal_text(const Heatmap& map, int width, bool color) {
  width = std::max(width, kMinWidth);
  std::string out = heading(map.title, width);
  const std::string below = ascii(map.below), above = ascii(map.above);
  int cell = std::max(columns(below), columns(above)), label = columns(ascii(map.y_title));
  for (const auto& row : map.values)
    for (double value : row) cell = std::max(cell, columns(number_text(value)));
  for (const std::string& text : map.x_labels) cell = std::max(cell, columns(ascii(text)));
  for (const std::string& text : map.y_labels) label = std::max(label, columns(ascii(text)));
  label = std::min(label, width / 3);
  cell = std::min(cell, width / 2);
  // Columns beyond the terminal's width continue below, in a further band.
  const size_t per_band = std::max(1, (width - label) / (cell + 1));
  size_t columns_total = map.x_labels.size();
  for (const auto& row : map.values) columns_total = std::max(columns_total, row.size());
  const auto fit = [](const std::string& text, int size) { return fmt::format("{:>{}}", text.substr(0, size), size); };
  out += paragraph(fmt::format("columns: {}; each cell: {} ({} below {}, {} from there on)", ascii(map.x_title),
                               ascii(map.value_title), below, number_text(map.threshold), above),
                   width);
  for (size_t first = 0; first < columns_total; first += per_band) {
    const size_t last = std::min(columns_total, first + per_band);
    out += fit(ascii(map.y_title), label);
    for (size_t x = first; x < last; ++x) out += " " + fit(x < map.x_labels.size() ? ascii(map.x_labels[x]) : "", cell);
    out += "\n";
    for (size_t y = 0; y < map.values.size(); ++y) {
      std::string numbers = fit(y < map.y_labels.size() ? ascii(map.y_labels[y]) : "", label), words(label, ' ');
      for (size_t x = first; x < last && x < map.values[y].size(); ++x) {
        const double value = map.values[y][x];
        const bool is_above = value >= map.threshold;
        const char* style = !color ? "" : is_above ? "33" : "34";
        numbers += " " + styled(fit(number_text(value), cell), style);
        words += " " + styled(fit(is_above ? above : below, cell), style);
      }
      out += numbers + "\n" + words + "\n";
    }
    if (last < columns_total) out += "\n";
  }
  return out;
}

std::string terminal_text(const Bars& bars, int width) {
  width = std::max(width, kMinWidth);
  std::vector<Column> head = {{""}};
  for (const Bars::Series& series : bars.series) head.push_back({ascii(series.name), true});
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < bars.labels.size(); ++i) {
    rows.push_back({bars.labels[i]});
    for (const Bars::Series& series : bars.series)
      rows.back().push_back(i < series.values.size() ? number_text(series.values[i]) : "");
  }
  return heading(bars.title + (bars.y_title.empty() ? "" : " [" + bars.y_title + "]"), width) +
         text_table(head, rows, width);
}

std::string terminal_text(const Lines& lines, int width) {
  width = std::max(width, kMinWidth);
  std::vector<double> xs;
  std::vector<Column> head = {{ascii(lines.x_title), true}};
  for (const Lines::Series& series : lines.series) {
    head.push_back({ascii(series.name), true});
    for (const auto& point : series.points) xs.push_back(point.first);
  }
  std::sort(xs.begin(), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  std::vector<std::vector<std::string>> rows;
  for (double x : xs) {
    rows.push_back({number_text(x)});
    for (const Lines::Series& series : lines.series) {
      const auto point =
          std::find_if(series.points.begin(), series.points.end(), [&](const auto& p) { return p.first == x; });
      std::string& cell = rows.back().emplace_back();
      if (point == series.points.end()) continue;
      cell = number_text(point->second);
      if (series.band.empty()) continue;
      const auto& [low, high] = series.band[static_cast<size_t>(point - series.points.begin())];
      cell += fmt::format(" ({} to {})", number_text(low), number_text(high));
    }
  }
  std::string out = heading(lines.title + (lines.y_title.empty() ? "" : " [" + lines.y_title + "]"), width) +
                    text_table(head, rows, width);
  for (const auto& [name, y] : lines.marks) out += paragraph(fmt::format("{}: {}", ascii(name), number_text(y)), width);
  return out;
}

std::string terminal_text(const TableBlock& table, int width) {
  width = std::max(width, kMinWidth);
  std::vector<Column> head;
  for (const std::string& title : table.head) head.push_back({ascii(title)});
  return heading(table.title, width) + text_table(head, table.rows, width);
}

std::string terminal_text(const Page& page, int width, bool color) {
  width = std::max(width, kMinWidth);
  std::string out = paragraph(ascii(page.title), width);
  for (const auto& [key, value] : page.facts) out += paragraph(ascii(key + ": " + value), width);
  for (const std::string& warning : page.warnings) out += paragraph(ascii("warning: " + warning), width);
  struct Draw {
    int width;
    bool color;
    std::string operator()(const Roofline& figure) const { return terminal_text(figure, width, color); }
    std::string operator()(const Heatmap& figure) const { return terminal_text(figure, width, color); }
    std::string operator()(const Bars& figure) const { return terminal_text(figure, width); }
    std::string operator()(const Lines& figure) const { return terminal_text(figure, width); }
    std::string operator()(const TableBlock& figure) const { return terminal_text(figure, width); }
  };
  for (const Block& block : page.blocks) out += "\n" + std::visit(Draw{width, color}, block);
  return out;
}

}  // namespace roofgen::plot
