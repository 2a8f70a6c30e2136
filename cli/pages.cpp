// What the commands print.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "roofline/plot/plot.h"

namespace roofgen::cli {
namespace {

constexpr int kPipeWidth = 100;  // where there is no terminal to ask

/// Nothing of a pipe or a device.
void say_written(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, error));
  print_err(fmt::format("roofgen: wrote {}, {}\n", path, bytes_text(bytes)));
}

}  // namespace

void warn(const std::string& line) { fmt::print(stderr, "roofgen: warning: {}\n", line); }
void print_out(const std::string& text) { fmt::print("{}", text); }
void print_err(const std::string& text) { fmt::print(stderr, "{}", text); }

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int wanted = columns ? std::atoi(columns) : 0;
  return wanted > 0 ? std::min(wanted, 400) : kPipeWidth;
}

Result<Exit> show_page(const plot::Page& page, const std::string& html, const DataFiles& files,
                       const Terminal& terminal) {
  if (html.empty())
    print_out(plot::terminal_text(page, terminal_width(), terminal.use_color(STDOUT_FILENO)));
  else
    ROOFGEN_CHECK(terminal.write_page(html, page, files));
  return Exit::kOk;
}

void declare_force(FlagSet app, bool& force) {
  app.add_switch("--force", force, "replace files that roofgen did not write, or that were changed since");
}

Terminal::Terminal() {
  warn = cli::warn;
  wrote = say_written;
  progress = [this](const std::string& kind) -> ShowPhase {
    auto shown = std::make_shared<Progress>(*this, kind);
    return [shown](const char* phase, uint64_t done, uint64_t total) { shown->show(phase, done, total); };
  };
}

bool Terminal::use_color(int fd) const {
  if (color != "auto") return color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(fd) && !(no_color && *no_color);
}

}  // namespace roofgen::cli
