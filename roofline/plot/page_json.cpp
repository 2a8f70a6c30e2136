// A page as JSON: the figures' values and, for rooflines, the scene derived from them, so that the page's script only
// draws. Read again, saved figures can be drawn anew.
#include <fmt/format.h>

#include "base/json_text.h"
#include "roofline/json.h"
#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"

namespace roofgen::plot {

ROOFGEN_TO_JSON(Slope, level, gb_s, origin, sustained)
ROOFGEN_FROM_JSON(Slope, level, gb_s, origin, sustained)
ROOFGEN_TO_JSON(Ceiling, name, tflops, under, origin, sustained)
ROOFGEN_FROM_JSON(Ceiling, name, tflops, origin, under, sustained)
ROOFGEN_FROM_JSON(Point, name, level, ai, tflops, roof_tflops, bound_by, time_us, share, origin, details)
ROOFGEN_TO_JSON(Arrow, from, to, label)
ROOFGEN_FROM_JSON(Arrow, from, to, label)
ROOFGEN_FROM_JSON(Roofline, title, subtitle, slopes, ceilings, points, arrows)
ROOFGEN_TO_JSON(Kernel, letter, name, points, note)
ROOFGEN_TO_JSON(Bars::Series, name, values)
ROOFGEN_FROM_JSON(Bars::Series, name, values)
ROOFGEN_FROM_JSON(Bars, title, y_title, log_y, labels, series)
inline void to_json(Json& json, const Lines::Series& series) {
  json = Json::object();
  ROOFGEN_PUT(json, series, name, points)
  if (!series.band.empty()) json["band"] = series.band;
}
inline void from_json(const Json& json, Lines::Series& series) {
  ROOFGEN_GET(json, series, name, points)
  if (json.contains("band")) json["band"].get_to(series.band);
}
ROOFGEN_FROM_JSON(Lines, title, x_title, y_title, log_x, log_y, series)
ROOFGEN_FROM_JSON(Heatmap, title, x_title, y_title, value_title, x_labels, y_labels, values, threshold, below, above)
ROOFGEN_FROM_JSON(TableBlock, title, head, rows)

namespace {

const char* fill_name(Fill fill) { return fill == Fill::kFull ? "full" : fill == Fill::kHalf ? "half" : "open"; }

Json block_json(const Roofline& roofline) {
  const Scene scene = make_scene(roofline);
  const Frame& frame = scene.frame;
  Json json = {{"kind", "roofline"}};
  ROOFGEN_PUT(json, roofline, title, subtitle)
  json["frame"] = {{"ai", {frame.ai_min, frame.ai_max}}, {"tflops", {frame.tflops_min, frame.tflops_max}}};
  ROOFGEN_PUT(json, scene, ai_title, levels)
  ROOFGEN_PUT(json, roofline, slopes, ceilings)
  Json& roofs = json["roofs"] = Json::array();
  for (const RoofLine& roof : scene.roofs) {
    Json& line = roofs.emplace_back();
    ROOFGEN_PUT(line, roof, name, value, level)
    line["slope"] = roof.is_slope;
    ROOFGEN_PUT(line, roof, solid, origin)
    line["from"] = {roof.ai0, roof.tflops0};
    line["to"] = {roof.ai1, roof.tflops1};
    line["ridge"] = roof.ridge;
    line["ridge_text"] = roof.ridge > 0 ? number_text(roof.ridge) : "";
    line["reach"] = roof.reach_ai;
  }
  json["kernels"] = scene.kernels;
  Json& points = json["points"] = Json::array();
  for (size_t i = 0; i < roofline.points.size(); ++i) {
    const Point& point = roofline.points[i];
    Json& mark = points.emplace_back(Json{{"kernel", scene.kernel_of[i]}});
    ROOFGEN_PUT(mark, point, name, level, ai, tflops, roof_tflops)
    mark["percent_text"] = percent_of_roof(point);
    ROOFGEN_PUT(mark, point, bound_by, time_us, share, origin)
    mark["fill"] = fill_name(fill_of(point.origin));
    mark["missing"] = scene.missing[i];
    mark["details"] = point.details;
  }
  json["arrows"] = scene.arrows;
  return json;
}

Json block_json(const Bars& bars) {
  Json json = {{"kind", "bars"}};
  ROOFGEN_PUT(json, bars, title, y_title, log_y, labels, series)
  return json;
}

Json block_json(const Lines& lines) {
  Json json = {{"kind", "lines"}};
  ROOFGEN_PUT(json, lines, title, x_title, y_title, log_x, log_y, series)
  json["marks"] = Json::array();
  for (const auto& [name, y] : lines.marks) json["marks"].push_back({{"name", name}, {"y", y}});
  return json;
}

Json block_json(const Heatmap& map) {
  Json json = {{"kind", "heatmap"}};
  ROOFGEN_PUT(json, map, title, x_title, y_title, value_title, x_labels, y_labels, values, threshold, below, above)
  return json;
}

Json block_json(const TableBlock& table) {
  Json json = {{"kind", "table"}};
  ROOFGEN_PUT(json, table, title, head, rows)
  return json;
}

// `at` and `get` throw for a missing member or a wrong type; read_page turns both into an error with the member's name.

void check(const Roofline& roofline) {
  for (const Arrow& arrow : roofline.arrows)
    if (arrow.from >= roofline.points.size() || arrow.to >= roofline.points.size())
      throw std::invalid_argument("an arrow from or to no point");
}

void check(const Bars& bars) {
  for (const Bars::Series& series : bars.series)
    if (series.values.size() != bars.labels.size())
      throw std::invalid_argument("a series of bars without a value for each label");
}

void check(const Lines& lines) {
  for (const Lines::Series& series : lines.series)
    if (!series.band.empty() && series.band.size() != series.points.size())
      throw std::invalid_argument("a band that does not have both ends at each point");
}

void check(const Heatmap& map) {
  if (map.values.size() != map.y_labels.size()) throw std::invalid_argument("a heatmap without a row for each label");
  for (const auto& row : map.values)
    if (row.size() != map.x_labels.size()) throw std::invalid_argument("a heatmap without a value for each label");
}

void check(const TableBlock& table) {
  for (const auto& row : table.rows)
    if (row.size() != table.head.size())
      throw std::invalid_argument("a row of a table that is not as wide as its head");
}

template <class Figure>
Figure checked(const Json& j) {
  Figure out = j.get<Figure>();
  check(out);
  return out;
}

Block block_of(const Json& j) {
  const std::string kind = j.at("kind").get<std::string>();
  if (kind == "roofline") return checked<Roofline>(j);
  if (kind == "bars") return checked<Bars>(j);
  if (kind == "heatmap") return checked<Heatmap>(j);
  if (kind == "table") return checked<TableBlock>(j);
  if (kind != "lines") throw std::invalid_argument(fmt::format("unknown kind of figure \"{}\"", kind));
  Lines lines = checked<Lines>(j);
  for (const Json& m : j.at("marks"))
    lines.marks.emplace_back(m.at("name").get<std::string>(), m.at("y").get<double>());
  return lines;
}

}  // namespace

std::string page_json(const Page& page) {
  Json json = {{"schema", kPageSchema}};
  ROOFGEN_PUT(json, page, title, facts, warnings)
  Json& blocks = json["blocks"] = Json::array();
  for (const Block& block : page.blocks)
    blocks.push_back(std::visit([](const auto& figure) { return block_json(figure); }, block));
  // Names may contain any bytes; invalid UTF-8 becomes U+FFFD.
  return json_line(json);
}

Result<Page> read_page(std::string text, const std::string& file) {
  ROOFGEN_TRY(const JsonFile parsed, JsonFile::parse(std::move(text), file));
  const Json& j = parsed.root();
  try {
    if (j.at("schema") != kPageSchema)
      return Error{Exit::kUsage, fmt::format("schema {} was expected", kPageSchema), {file}};
    Page out;
    j.at("title").get_to(out.title);
    j.at("facts").get_to(out.facts);
    j.at("warnings").get_to(out.warnings);
    for (const Json& block : j.at("blocks")) out.blocks.push_back(block_of(block));
    return out;
  } catch (const std::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole page: {}", e.what()), {file}};
  }
}

}  // namespace roofgen::plot
