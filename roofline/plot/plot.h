// The renderers. All of them draw the same values by the same conventions (docs/use/plots.md).
#pragma once

#include <string>

#include "generator/generate.h"
#include "roofgen/result.h"
#include "roofline/plot/figure.h"
#include "roofline/plot/scene.h"

namespace roofgen::plot {

inline constexpr const char* kPageSchema = "roofgen.page/1";

/// For a terminal: the table of points, the plot, then the legend. No line exceeds `width` columns (at least 40 are
/// used). Output is ASCII and box characters; other characters in names become '?'. Escape sequences only with `color`.
std::string terminal_text(const Roofline& roofline, int width, bool color);
std::string terminal_text(const Heatmap& heatmap, int width, bool color);
std::string terminal_text(const Bars& bars, int width);
std::string terminal_text(const Lines& lines, int width);
std::string terminal_text(const TableBlock& table, int width);
/// The whole page in order: title, facts, warnings, blocks.
std::string terminal_text(const Page& page, int width, bool color);

/// A self-contained page with Chart.js and the data inline; it loads nothing. Exit::kUnavailable when roofgen was built
/// without Chart.js.
Result<std::string> html_page(const Page& page, const DataFiles& files);

/// The data of html_page as JSON, sufficient to draw the figures again without running anything. {"schema":
/// "roofgen.page/1", "title", "facts", "warnings", "blocks": [...]}.
std::string page_json(const Page& page);
/// Reads the JSON of page_json. Exit::kUsage for other text; `file` is its name in messages.
Result<Page> read_page(std::string text, const std::string& file);

/// A complete SVG file, or an <svg> element for a page.
std::string svg(const Roofline& roofline, Place place);

/// The PNG of a file of svg(), by rsvg-convert. Exit::kUnavailable without rsvg-convert; the error includes the output
/// of one that fails.
Result<std::string> png(const std::string& svg);

}  // namespace roofgen::plot
