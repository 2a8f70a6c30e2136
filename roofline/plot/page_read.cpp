// Reads a page from its JSON (the inverse of page_json), so that saved figures can be drawn again.
#include <fmt/format.h>

#include "base/json_text.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot {
namespace {

/// `at` throws for a missing member, `get` for a wrong type; read_page turns both into an error with the member's name.
Origin origin_of(const Json& j) {
  const std::string name = j.at("origin").get<std::string>();
  for (Origin o :
       {Origin::kDatasheet, Origin::kCompiled, Origin::kModel, Origin::kSimulated, Origin::kMeasured, Origin::kCounter})
    if (name == to_string(o)) return o;
  throw std::invalid_argument(fmt::format("unknown origin \"{}\"", name));
}

template <class T>
T get(const Json& j, const char* key) {
  return j.at(key).get<T>();
}

Roofline roofline_of(const Json& j) {
  Roofline out;
  out.title = get<std::string>(j, "title");
  out.subtitle = get<std::string>(j, "subtitle");
  for (const Json& s : j.at("slopes"))
    out.slopes.push_back(
        {get<std::string>(s, "level"), get<double>(s, "gb_s"), origin_of(s), get<bool>(s, "sustained")});
  for (const Json& c : j.at("ceilings"))
    out.ceilings.push_back({get<std::string>(c, "name"), get<double>(c, "tflops"), origin_of(c),
                            get<std::string>(c, "under"), get<bool>(c, "sustained")});
  for (const Json& p : j.at("points")) {
    Point point;
    point.name = get<std::string>(p, "name");
    point.level = get<std::string>(p, "level");
    point.ai = get<double>(p, "ai");
    point.tflops = get<double>(p, "tflops");
    point.roof_tflops = get<double>(p, "roof_tflops");
    point.bound_by = get<std::string>(p, "bound_by");
    point.time_us = get<double>(p, "time_us");
    point.share = get<double>(p, "share");
    point.origin = origin_of(p);
    for (const Json& d : p.at("details"))
      point.details.emplace_back(d.at(0).get<std::string>(), d.at(1).get<std::string>());
    out.points.push_back(std::move(point));
  }
  for (const Json& a : j.at("arrows")) {
    const Arrow arrow{get<size_t>(a, "from"), get<size_t>(a, "to"), get<std::string>(a, "label")};
    if (arrow.from >= out.points.size() || arrow.to >= out.points.size())
      throw std::invalid_argument("an arrow from or to no point");
    out.arrows.push_back(arrow);
  }
  return out;
}

Bars bars_of(const Json& j) {
  Bars out;
  out.title = get<std::string>(j, "title");
  out.y_title = get<std::string>(j, "y_title");
  out.log_y = get<bool>(j, "log_y");
  out.labels = get<std::vector<std::string>>(j, "labels");
  for (const Json& s : j.at("series")) {
    out.series.push_back({get<std::string>(s, "name"), get<std::vector<double>>(s, "values")});
    if (out.series.back().values.size() != out.labels.size())
      throw std::invalid_argument("a series of bars without a value for each label");
  }
  return out;
}

Lines lines_of(const Json& j) {
  Lines out;
  out.title = get<std::string>(j, "title");
  out.x_title = get<std::string>(j, "x_title");
  out.y_title = get<std::string>(j, "y_title");
  out.log_x = get<bool>(j, "log_x");
  out.log_y = get<bool>(j, "log_y");
  for (const Json& s : j.at("series")) {
    out.series.push_back({get<std::string>(s, "name"), {}});
    for (const Json& p : s.at("points"))
      out.series.back().points.emplace_back(p.at(0).get<double>(), p.at(1).get<double>());
  }
  for (const Json& m : j.at("marks")) out.marks.emplace_back(get<std::string>(m, "name"), get<double>(m, "y"));
  return out;
}

Heatmap heatmap_of(const Json& j) {
  Heatmap out;
  out.title = get<std::string>(j, "title");
  out.x_title = get<std::string>(j, "x_title");
  out.y_title = get<std::string>(j, "y_title");
  out.value_title = get<std::string>(j, "value_title");
  out.x_labels = get<std::vector<std::string>>(j, "x_labels");
  out.y_labels = get<std::vector<std::string>>(j, "y_labels");
  out.values = get<std::vector<std::vector<double>>>(j, "values");
  out.threshold = get<double>(j, "threshold");
  out.below = get<std::string>(j, "below");
  out.above = get<std::string>(j, "above");
  if (out.values.size() != out.y_labels.size()) throw std::invalid_argument("a heatmap without a row for each label");
  for (const auto& row : out.values)
    if (row.size() != out.x_labels.size()) throw std::invalid_argument("a heatmap without a value for each label");
  return out;
}

TableBlock table_of(const Json& j) {
  TableBlock out{get<std::string>(j, "title"), get<std::vector<std::string>>(j, "head"),
                 get<std::vector<std::vector<std::string>>>(j, "rows")};
  for (const auto& row : out.rows)
    if (row.size() != out.head.size()) throw std::invalid_argument("a row of a table that is not as wide as its head");
  return out;
}

Block block_of(const Json& j) {
  const std::string kind = get<std::string>(j, "kind");
  if (kind == "roofline") return roofline_of(j);
  if (kind == "bars") return bars_of(j);
  if (kind == "lines") return lines_of(j);
  if (kind == "heatmap") return heatmap_of(j);
  if (kind == "table") return table_of(j);
  throw std::invalid_argument(fmt::format("unknown kind of figure \"{}\"", kind));
}

}  // namespace

Result<Page> read_page(std::string text, const std::string& file) {
  ROOFGEN_TRY(const JsonFile parsed, JsonFile::parse(std::move(text), file));
  const Json& j = parsed.root();
  try {
    if (j.at("schema") != kPageSchema)
      return Error{Exit::kUsage, fmt::format("schema {} was expected", kPageSchema), {file}};
    Page out;
    out.title = get<std::string>(j, "title");
    for (const Json& f : j.at("facts")) out.facts.emplace_back(f.at(0).get<std::string>(), f.at(1).get<std::string>());
    out.warnings = get<std::vector<std::string>>(j, "warnings");
    for (const Json& block : j.at("blocks")) out.blocks.push_back(block_of(block));
    return out;
  } catch (const std::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole page: {}", e.what()), {file}};
  }
}

}  // namespace roofgen::plot
