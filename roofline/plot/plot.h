// The renderers. All draw the same values by the same conventions (docs/plots.md).
#pragma once

#include <string>

#include "generator/generate.h"
#include "roofgen/result.h"
#include "roofline/plot/figure.h"

namespace roofgen::plot {

inline constexpr const char* kPageSchema = "roofgen.page/1";

/// For a terminal: the points table, then the plot, then what the marks mean. No line has more than
/// `width` columns (at least 40 are used). ASCII and box characters only: anything else in a name
/// becomes '?'. Escape sequences only when `color`.
std::string terminal_text(const Roofline& roofline, int width, bool color);
std::string terminal_text(const Heatmap& heatmap, int width, bool color);
std::string terminal_text(const Bars& bars, int width);
std::string terminal_text(const Lines& lines, int width);
std::string terminal_text(const TableBlock& table, int width);
/// Everything on the page in order: title, facts, warnings, blocks.
std::string terminal_text(const Page& page, int width, bool color);

/// One self-contained page: Chart.js and the data are inside, nothing is fetched.
/// Exit::kUnavailable when Chart.js was not there when roofgen was built.
Result<std::string> html_page(const Page& page, const DataFiles& files);

/// What html_page puts into the page, as JSON: the values to draw the figures again without running
/// anything. {"schema": "roofgen.page/1", "title", "facts", "warnings", "blocks": [...]}.
std::string page_json(const Page& page);
/// The page again. Exit::kUsage when `text` is none; `file` is its name in messages.
Result<Page> read_page(std::string text, const std::string& file);

enum class PlotFormat { kSvg, kPng };

/// A complete gnuplot script that writes the image to its standard output.
Result<std::string> gnuplot_script(const Roofline& roofline, PlotFormat format, const DataFiles& files = DataFiles());

/// Runs gnuplot and puts the image at `path`, whole or not at all. Exit::kUnavailable when there is
/// no gnuplot; what it prints on failure is in the error.
Result<void> write_plot(const Roofline& roofline, PlotFormat format, const std::string& path,
                        const DataFiles& files = DataFiles());

}  // namespace roofgen::plot
