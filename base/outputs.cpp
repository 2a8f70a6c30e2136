#include "base/outputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/output_file.h"
#include "base/sha256.h"

namespace roofgen {
namespace {

/// Nothing: no regular file, or one that cannot be read.
std::optional<std::string> bytes_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Error refused(const std::vector<std::string>& paths) {
  const size_t more = paths.size() - 1;
  return {Exit::kUsage,
          fmt::format("is there already, and roofgen did not write it as it is now{}; choose another place, or --force "
                      "replaces {}",
                      more == 0 ? "" : fmt::format("; the same holds for {} more file{}", more, more == 1 ? "" : "s"),
                      more == 0 ? "it" : "them"),
          {paths.front()}};
}

}  // namespace

bool Outputs::is_own(const std::string& digest) const {
  if (own_.count(digest)) return true;
  std::ifstream in(record_);
  for (std::string line; std::getline(in, line);)
    if (line == digest) return true;
  return false;
}

/// One write() of a whole line: processes append at the same time.
void Outputs::remember(std::string_view text) const {
  const std::string digest = sha256(text);
  if (record_.empty() || is_own(digest)) return;
  if (!make_directory(std::filesystem::path(record_).parent_path())) return;
  const int file = open(record_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  const std::string line = digest + "\n";
  (void)!::write(file, line.data(), line.size());
  close(file);
}

Result<void> Outputs::check(const std::vector<std::string>& paths) const {
  std::vector<std::string> alien;
  for (const std::string& path : paths) {
    ROOFGEN_CHECK(can_write(path));
    if (force_) continue;
    const auto there = bytes_of(path);
    std::error_code error;
    const bool unreadable = !there && std::filesystem::is_regular_file(path, error);
    if (unreadable || (there && !there->empty() && !is_own(sha256(*there)))) alien.push_back(path);
  }
  return alien.empty() ? Result<void>() : refused(alien);
}

Result<void> Outputs::write(const std::string& path, std::string_view text) const {
  return write_all({{path, std::string(text)}});
}

Result<void> Outputs::write_all(const std::map<std::string, std::string>& files) const {
  std::vector<std::string> changed;
  for (const auto& [path, text] : files)
    if (bytes_of(path) != text) changed.push_back(path);
  ROOFGEN_CHECK(check(changed));
  for (const auto& [path, text] : files) {
    // The same bytes, too: builds go by the time of a file.
    ROOFGEN_CHECK(write_output(path, text));
    remember(text);
  }
  return {};
}

void Outputs::adopt(const std::string& path) const {
  if (const auto text = bytes_of(path)) remember(*text);
}

}  // namespace roofgen
