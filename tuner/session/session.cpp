#include "tuner/session/session.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "roofline/plot/plot.h"

namespace roofgen {

const char* version() { return ROOFGEN_VERSION; }

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

Result<void> Session::write(const std::string& path, std::string_view text) const {
  ROOFGEN_CHECK(outputs().write(path, text));
  wrote(path);
  return {};
}

Result<void> Session::write_page(const std::string& path, const plot::Page& page, const DataFiles& files) const {
  ROOFGEN_TRY(const std::string text, plot::html_page(page, files));
  return write(path, text);
}

}  // namespace roofgen
