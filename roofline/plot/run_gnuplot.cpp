#include <fmt/format.h>

#include "base/output_file.h"
#include "base/subprocess.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot {

namespace {

constexpr double kTimeLimitS = 120;

/// The end of `text` on one line.
std::string last_words(std::string_view text) {
  constexpr size_t kMost = 600;
  std::string line;
  for (const char c : text.substr(text.size() - std::min(text.size(), kMost))) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

Error failed(const std::string& path, const std::string& why) {
  return Error{.message = "the plot cannot be written: " + why, .where = {path}};
}

}  // namespace

Result<void> write_plot(const Roofline& roofline, PlotFormat format, const std::string& path, const DataFiles& files) {
  ROOFGEN_TRY(const std::string script, gnuplot_script(roofline, format, files));
  if (find_program("", "gnuplot", {}).empty())
    return Error{.exit = Exit::kUnavailable,
                 .message = "gnuplot was not found, which draws SVG and PNG: install the package gnuplot-nox"};
  // -d: without the user's start-up files.
  ROOFGEN_TRY(
      const ProcessResult drawn,
      run_process({.argv = {"gnuplot", "-d"}, .input = script, .timeout_s = kTimeLimitS, .most_output = 64 << 20}));
  if (drawn.timed_out) return failed(path, fmt::format("gnuplot did not end within {:.0f} s", kTimeLimitS));
  if (!drawn.ok() || drawn.out.empty()) {
    const std::string words = last_words(drawn.err);
    return failed(path, "gnuplot failed" + (words.empty() ? "" : ": " + words));
  }
  return write_output(path, drawn.out);
}

}  // namespace roofgen::plot
