// The page as JSON: the figures' values and, for rooflines, the scene derived from them, so that the page's script only
// draws.

#include "base/json.h"
#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"

namespace roofgen::plot {

namespace {

const char* fill_name(Fill fill) { return fill == Fill::kFull ? "full" : fill == Fill::kHalf ? "half" : "open"; }

Json to_json(const Roofline& roofline) {
  const Scene scene = make_scene(roofline);
  const Frame& frame = scene.frame;
  Json json = {{"kind", "roofline"},
               {"title", roofline.title},
               {"subtitle", roofline.subtitle},
               {"frame", {{"ai", {frame.ai_min, frame.ai_max}}, {"tflops", {frame.tflops_min, frame.tflops_max}}}},
               {"ai_title", scene.ai_title},
               {"levels", scene.levels}};
  Json &slopes = json["slopes"] = Json::array(), &ceilings = json["ceilings"] = Json::array();
  for (const Slope& slope : roofline.slopes)
    slopes.push_back({{"level", slope.level},
                      {"gb_s", slope.gb_s},
                      {"origin", to_string(slope.origin)},
                      {"sustained", slope.sustained}});
  for (const Ceiling& ceiling : roofline.ceilings)
    ceilings.push_back({{"name", ceiling.name},
                        {"tflops", ceiling.tflops},
                        {"under", ceiling.under},
                        {"origin", to_string(ceiling.origin)},
                        {"sustained", ceiling.sustained}});
  Json& roofs = json["roofs"] = Json::array();
  for (const RoofLine& roof : scene.roofs)
    roofs.push_back({{"name", roof.name},
                     {"value", roof.value},
                     {"level", roof.level},
                     {"slope", roof.is_slope},
                     {"solid", roof.solid},
                     {"origin", to_string(roof.origin)},
                     {"from", {roof.ai0, roof.tflops0}},
                     {"to", {roof.ai1, roof.tflops1}},
                     {"ridge", roof.ridge},
                     {"ridge_text", roof.ridge > 0 ? number_text(roof.ridge) : ""},
                     {"reach", roof.reach_ai}});
  Json &kernels = json["kernels"] = Json::array(), &points = json["points"] = Json::array();
  for (const Kernel& kernel : scene.kernels)
    kernels.push_back(
        {{"letter", kernel.letter}, {"name", kernel.name}, {"points", kernel.points}, {"note", kernel.note}});
  for (size_t i = 0; i < roofline.points.size(); ++i) {
    const Point& point = roofline.points[i];
    Json details = Json::array();
    for (const auto& [key, value] : point.details) details.push_back({key, value});
    points.push_back({{"kernel", scene.kernel_of[i]},
                      {"name", point.name},
                      {"level", point.level},
                      {"ai", point.ai},
                      {"tflops", point.tflops},
                      {"roof_tflops", point.roof_tflops},
                      {"percent_text", percent_of_roof(point)},
                      {"bound_by", point.bound_by},
                      {"time_us", point.time_us},
                      {"share", point.share},
                      {"origin", to_string(point.origin)},
                      {"fill", fill_name(fill_of(point.origin))},
                      {"missing", scene.missing[i]},
                      {"details", std::move(details)}});
  }
  Json& arrows = json["arrows"] = Json::array();
  for (const Arrow& arrow : scene.arrows)
    arrows.push_back({{"from", arrow.from}, {"to", arrow.to}, {"label", arrow.label}});
  return json;
}

Json to_json(const Bars& bars) {
  Json json = {{"kind", "bars"},      {"title", bars.title},   {"y_title", bars.y_title},
               {"log_y", bars.log_y}, {"labels", bars.labels}, {"series", Json::array()}};
  for (const Bars::Series& series : bars.series)
    json["series"].push_back({{"name", series.name}, {"values", series.values}});
  return json;
}

Json to_json(const Lines& lines) {
  Json json = {{"kind", "lines"},      {"title", lines.title}, {"x_title", lines.x_title}, {"y_title", lines.y_title},
               {"log_x", lines.log_x}, {"log_y", lines.log_y}, {"series", Json::array()},  {"marks", Json::array()}};
  for (const Lines::Series& series : lines.series) {
    Json points = Json::array();
    for (const auto& [x, y] : series.points) points.push_back({x, y});
    json["series"].push_back({{"name", series.name}, {"points", std::move(points)}});
  }
  for (const auto& [name, y] : lines.marks) json["marks"].push_back({{"name", name}, {"y", y}});
  return json;
}

Json to_json(const Heatmap& map) {
  return {{"kind", "heatmap"},
          {"title", map.title},
          {"x_title", map.x_title},
          {"y_title", map.y_title},
          {"value_title", map.value_title},
          {"x_labels", map.x_labels},
          {"y_labels", map.y_labels},
          {"values", map.values},
          {"threshold", map.threshold},
          {"below", map.below},
          {"above", map.above}};
}

Json to_json(const TableBlock& table) {
  return {{"kind", "table"}, {"title", table.title}, {"head", table.head}, {"rows", table.rows}};
}

}  // namespace

std::string page_json(const Page& page) {
  Json json = {{"schema", kPageSchema},
               {"title", page.title},
               {"facts", Json::array()},
               {"warnings", page.warnings},
               {"blocks", Json::array()}};
  for (const auto& [key, value] : page.facts) json["facts"].push_back({key, value});
  for (const Block& block : page.blocks)
    json["blocks"].push_back(std::visit([](const auto& figure) { return to_json(figure); }, block));
  // Names may contain any bytes; invalid UTF-8 becomes U+FFFD.
  return json_line(json);
}

}  // namespace roofgen::plot
