#include <fmt/format.h>

#include <utility>

#include "generator/jinja/jinja.h"
#include "roofline/plot/chart_js.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot {

namespace {

/// Escapes text for HTML elements and attributes.
std::string html_text(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

/// Escapes JSON for a <script> element: no text can end the element or open a comment.
std::string script_json(const std::string& json) {
  std::string out;
  for (char c : json) switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  return out;
}

/// A template value is limited to 1 MiB; data may be longer.
expr::List pieces(const std::string& text) {
  constexpr size_t kPiece = 1 << 19;
  expr::List list;
  for (size_t at = 0; at < text.size(); at += kPiece) list.push_back(text.substr(at, kPiece));
  return list;
}

expr::List text_list(const std::vector<std::string>& texts) {
  expr::List list;
  for (const std::string& text : texts) list.push_back(html_text(text));
  return list;
}

/// The parts that the template writes as HTML, readable without JavaScript: titles and tables.
struct BlockScope {
  expr::Map operator()(const Roofline& roofline) const {
    return {{"kind", "roofline"},
            {"title", html_text(roofline.title)},
            {"subtitle", html_text(roofline.subtitle)},
            {"svg", pieces(svg(roofline, Place::kPage))}};
  }
  expr::Map operator()(const Bars& bars) const { return {{"kind", "bars"}, {"title", html_text(bars.title)}}; }
  expr::Map operator()(const Lines& lines) const { return {{"kind", "lines"}, {"title", html_text(lines.title)}}; }
  expr::Map operator()(const Heatmap& map) const { return {{"kind", "heatmap"}, {"title", html_text(map.title)}}; }
  /// Reasons are sentences: the last column, "why", becomes a line of its own below its row.
  expr::Map operator()(const TableBlock& table) const {
    const bool reasons = !table.head.empty() && table.head.back() == "why";
    std::vector<std::string> head = table.head;
    if (reasons) head.pop_back();
    expr::List rows;
    for (std::vector<std::string> row : table.rows) {
      std::string reason;
      if (reasons) reason = std::exchange(row.back(), {}), row.pop_back();
      rows.push_back(expr::Map{{"cells", text_list(row)}, {"reason", html_text(reason)}});
    }
    return {{"kind", "table"},
            {"title", html_text(table.title)},
            {"head", text_list(head)},
            {"rows", rows},
            {"columns", static_cast<int64_t>(head.size())}};
  }
};

}  // namespace

Result<std::string> html_page(const Page& page, const DataFiles& files) {
  if (chart_js().empty())
    return Error{.exit = Exit::kUnavailable,
                 .message = "no Chart.js in this build: install the package libjs-chart.js, then build again"};
  expr::List facts, blocks;
  for (const auto& [key, value] : page.facts) facts.push_back(expr::List{html_text(key), html_text(value)});
  for (const Block& block : page.blocks) blocks.push_back(std::visit(BlockScope{}, block));
  const expr::Map scope = {{"title", html_text(page.title)},
                           {"facts", std::move(facts)},
                           {"warnings", text_list(page.warnings)},
                           {"blocks", std::move(blocks)},
                           {"data", pieces(script_json(page_json(page)))},
                           {"chart_js", std::string(chart_js())}};
  const auto loader = [&](std::string_view name) { return files.read(fmt::format("templates/{}", name)); };
  ROOFGEN_TRY(jinja::Rendered rendered,
              jinja::render(loader, "plots/page.html.jinja", scope, {.output_bytes = 64 << 20}));
  return std::move(rendered.text);
}

}  // namespace roofgen::plot
