// The renderers. All of them draw the same values by the same conventions (docs/use/plots.md).
#pragma once

#include <string>

#include "base/outputs.h"
#include "generator/generate.h"
#include "roofgen/result.h"
#include "roofline/plot/figure.h"

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

enum class PlotFormat { kSvg, kPng };

/// A complete gnuplot script that writes the image to its standard output.
Result<std::string> gnuplot_script(const Roofline& roofline, PlotFormat format, const DataFiles& files = DataFiles());

/// Runs gnuplot and writes the image to `path`, completely or not at all. Exit::kUnavailable without gnuplot; the error
/// includes gnuplot's output on failure.
Result<void> write_plot(const Roofline& roofline, PlotFormat format, const std::string& path, const Outputs& outputs,
                        const DataFiles& files = DataFiles());

}  // namespace roofgen::plot
