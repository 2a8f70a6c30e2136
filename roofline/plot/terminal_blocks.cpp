// The other figures in a terminal: grids and tables of numbers.
#include <fmt/format.h>

#include <algorithm>

#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"
#include "roofline/plot/text.h"

namespace roofgen::plot {

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
      rows.back().push_back(point == series.points.end() ? "" : number_text(point->second));
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
