#include "library/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/json.h"
#include "base/paths.h"

namespace roofgen::library {
namespace {

int open_to_append(const std::string& file) {
  return open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

Json number_or_text(const std::string& text) {
  int64_t number = 0;
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad == std::errc() && rest == text.data() + text.size() && std::to_string(number) == text) return number;
  return text;
}

}  // namespace

std::string capture_file() { return environment("ROOFGEN_CAPTURE"); }

Result<void> can_capture(const std::string& file) {
  const int fd = open_to_append(file);
  if (fd < 0) return Error{Exit::kFailed, fmt::format("ROOFGEN_CAPTURE={}: {}", file, std::strerror(errno))};
  close(fd);
  return {};
}

std::string captured_line(const std::string& op, const FlagValues& flags, const std::map<std::string, int64_t>& sizes,
                          uint64_t count) {
  Json out{{"op", op}};
  for (const auto& [name, value] : sizes) {
    std::string flag = name;
    std::ranges::replace(flag, '_', '-');
    out[flag] = value;
  }
  for (const auto& [name, values] : flags) {
    const std::string member = name.substr(2);
    if (out.contains(member)) continue;
    if (values.empty())
      out[member] = true;
    else if (values.size() == 1)
      out[member] = number_or_text(values.front());
    else
      out[member] = values;
  }
  out["count"] = count;
  return json_line(out) + "\n";
}

void capture(const std::string& file, const std::string& line) {
  const int fd = open_to_append(file);
  if (fd < 0) return;  // said by can_capture
  // One write to a file opened so lands whole behind those of other processes.
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  close(fd);
}

}  // namespace roofgen::library
