// Reading inputs and showing pages: shared by the commands that draw.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "roofline/plot/plot.h"

namespace roofgen::cli {
namespace {

constexpr int kPipeWidth = 100;  // where there is no terminal to ask

}  // namespace

const char* version() { return ROOFGEN_VERSION; }
void warn(const std::string& line) { fmt::print(stderr, "roofgen: warning: {}\n", line); }
void print_out(const std::string& text) { fmt::print("{}", text); }
void print_err(const std::string& text) { fmt::print(stderr, "{}", text); }

Result<Device> find_device(const DataFiles& files, const std::string& name) {
  return find_device(files, name, ProfileFlags{});
}

Result<std::string> read_input(const std::string& path, size_t most) {
  std::error_code ignored;
  if (path != "-" && std::filesystem::is_directory(path, ignored))
    return Error{Exit::kUsage, "is a directory; a file was expected", {path}};
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file) return Error{Exit::kUsage, fmt::format("cannot be read: {}", std::strerror(errno)), {path}};
  std::string text;
  char chunk[65536];
  size_t got = 0;
  while (text.size() <= most && (got = std::fread(chunk, 1, sizeof chunk, file)) > 0) text.append(chunk, got);
  const bool failed = std::ferror(file) != 0;
  if (file != stdin) std::fclose(file);
  if (failed) return Error{Exit::kUsage, "cannot be read", {path}};
  if (text.size() > most) return Error{Exit::kUsage, fmt::format("larger than {} bytes", most), {path}};
  return text;
}

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int wanted = columns ? std::atoi(columns) : 0;
  return wanted > 0 ? std::min(wanted, 400) : kPipeWidth;
}

Result<Exit> show_page(const plot::Page& page, const std::string& html, const DataFiles& files,
                       const Session& session) {
  if (html.empty()) {
    session.out(plot::terminal_text(page, terminal_width(), session.use_color(STDOUT_FILENO)));
    return Exit::kOk;
  }
  ROOFGEN_TRY(const std::string text, plot::html_page(page, files));
  ROOFGEN_CHECK(session.write(html, text));
  return Exit::kOk;
}

void declare_force(FlagSet app, bool& force) {
  app.add_switch("--force", force, "replace files that roofgen did not write, or that were changed since");
}

Result<void> Session::write(const std::string& path, std::string_view text) const {
  ROOFGEN_CHECK(outputs().write(path, text));
  say_written(path);
  return {};
}

void Session::say_written(const std::string& path) const {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, error));
  err(fmt::format("roofgen: wrote {}, {}\n", path, bytes_text(bytes)));
}

bool Session::use_color(int fd) const {
  if (color != "auto") return color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(fd) && !(no_color && *no_color);
}

}  // namespace roofgen::cli
