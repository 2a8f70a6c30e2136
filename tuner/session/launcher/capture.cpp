#include "tuner/session/launcher/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

#include "base/json.h"
#include "base/paths.h"

namespace roofgen {
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

/// The example lengths of a request, as many as a call has and none longer; the first is the longest.
std::string lengths_of(const std::string& example, int64_t count, int64_t longest) {
  std::vector<int64_t> out;
  std::istringstream in(example);
  for (std::string one; std::getline(in, one, ',');) out.push_back(std::min<int64_t>(std::stoll(one), longest));
  std::ranges::rotate(out, std::ranges::max_element(out));
  const size_t known = out.size();
  out.resize(static_cast<size_t>(count));
  for (size_t i = known; i < out.size(); ++i) out[i] = out[i - known];
  return fmt::format("{}", fmt::join(out, ","));
}

/// The text of a flag in a call with these sizes: examples of a request go with its own. Empty: leave it out.
std::string example_text(const std::string& flag, const std::string& text, const Sizes& sizes) {
  const auto size = [&](const char* name) { return sizes.count(name) ? sizes.at(name) : 1; };
  if (flag == "--kv-lengths") return lengths_of(text, size("batch"), size("kv_len"));
  if (flag == "--lengths") return lengths_of(text, size("batch"), size("L"));
  return flag == "--sizes" ? "" : text;
}

}  // namespace

std::string capture_file() { return environment("ROOFGEN_CAPTURE"); }

Result<void> can_capture(const std::string& file) {
  const int fd = open_to_append(file);
  if (fd < 0) return Error{Exit::kFailed, fmt::format("ROOFGEN_CAPTURE={}: {}", file, std::strerror(errno))};
  close(fd);
  return {};
}

std::string captured_line(const std::string& op, const FlagValues& flags, const Sizes& sizes, uint64_t count) {
  Json out{{"op", op}};
  for (const auto& [name, value] : sizes) {
    if (name == "M" && sizes.count("tokens")) continue;  // M follows from tokens and topk
    std::string flag = name;
    std::ranges::replace(flag, '_', '-');
    out[flag] = value;
  }
  for (const auto& [name, values] : flags) {
    const std::string member = name.substr(2);
    if (out.contains(member)) continue;
    if (values.empty())
      out[member] = true;
    else if (values.size() > 1)
      out[member] = values;
    else if (const std::string text = example_text(name, values.front(), sizes); !text.empty())
      out[member] = number_or_text(text);
  }
  out["count"] = count;
  return json_line(out) + "\n";
}

void capture(const std::string& file, const std::string& line) {
  const int fd = open_to_append(file);
  if (fd < 0) return;  // said by can_capture
  // One write to a file opened so lands whole after those of other processes.
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  close(fd);
}

}  // namespace roofgen
