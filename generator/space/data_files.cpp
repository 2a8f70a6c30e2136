#include "generator/space/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "generator/space/embedded_files.h"

namespace roofgen {

namespace fs = std::filesystem;

namespace {

// A user's folder is untrusted: limits far above real files and far below available memory.
constexpr size_t kMaxNameBytes = 255;
constexpr uintmax_t kMaxFileBytes = uintmax_t{4} << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxListed = 10000;

/// The folders of data files; anything else below a data directory is ignored.
constexpr std::array<std::string_view, 5> kRoots = {"templates", "search_spaces", "devices", "work", "models"};

/// Whether a name is relative, printable, and stays inside its folder.
bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == '\x7f') return false;
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

const EmbeddedFile* find_embedded(std::string_view name) {
  const auto files = embedded_files();
  const auto it =
      std::lower_bound(files.begin(), files.end(), name,
                       [](const EmbeddedFile& file, std::string_view wanted) { return file.name < wanted; });
  return it != files.end() && it->name == name ? &*it : nullptr;
}

/// The path of `name` in the first directory that has it, or an empty path.
fs::path find_in(const std::vector<std::string>& dirs, std::string_view name) {
  for (const std::string& dir : dirs) {
    fs::path path = fs::path(dir) / name;
    std::error_code error;
    if (fs::exists(path, error)) return path;
  }
  return {};
}

Result<std::string> read_bounded(const fs::path& path) {
  std::error_code error;
  // Reading a FIFO or a device could block forever.
  if (!fs::is_regular_file(path, error)) return Error{.message = "not a regular file", .where = {path.string()}};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{.message = "cannot be read", .where = {path.string()}};
  std::string text;
  std::array<char, 65536> chunk;
  while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0) {
    text.append(chunk.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes)
      return Error{.message = fmt::format("larger than the limit of {} bytes", kMaxFileBytes),
                   .where = {path.string()}};
  }
  if (in.bad()) return Error{.message = "cannot be read", .where = {path.string()}};
  return text;
}

void list_below(const fs::path& dir, const std::string& base, std::string_view prefix, int depth,
                std::set<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator it(dir / base, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (file.front() == '.' || file.front() == '#' || file.back() == '~') continue;
    const std::string name = base + "/" + file;
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      // Skip folders whose files cannot have the prefix.
      const size_t common = std::min(prefix.size(), name.size());
      if (depth < kMaxDepth && prefix.substr(0, common) == std::string_view(name).substr(0, common))
        list_below(dir, name, prefix, depth + 1, names);
    } else if (it->is_regular_file(ignored) && is_safe_name(name) && name.starts_with(prefix)) {
      if (names.size() >= kMaxListed) return;
      names.insert(name);
    }
  }
}

}  // namespace

DataFiles::DataFiles(std::vector<std::string> dirs) : dirs_(std::move(dirs)) {}

Result<std::string> DataFiles::load(std::string_view name) const {
  if (!is_safe_name(name)) return Error{.message = fmt::format("'{}' is not a name of a data file", name)};
  if (const fs::path path = find_in(dirs_, name); !path.empty()) return read_bounded(path);
  if (const EmbeddedFile* file = find_embedded(name)) return std::string(file->text);
  Error error{.message = fmt::format("no file '{}'", name)};
  for (const std::string& dir : dirs_) error.notes.push_back(fmt::format("looked in {}", dir));
  error.notes.push_back("looked among the files built into roofgen");
  return error;
}

std::optional<std::string> DataFiles::read(std::string_view name) const {
  auto text = load(name);
  if (!text) return std::nullopt;
  return std::move(*text);
}

std::vector<std::string> DataFiles::list(std::string_view prefix) const {
  std::set<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.name.starts_with(prefix)) names.emplace(file.name);
  for (const std::string& dir : dirs_)
    for (std::string_view root : kRoots) {
      const size_t common = std::min(prefix.size(), root.size());
      if (prefix.substr(0, common) == root.substr(0, common)) list_below(dir, std::string(root), prefix, 0, names);
    }
  return {names.begin(), names.end()};
}

std::string DataFiles::origin(std::string_view name) const {
  if (!is_safe_name(name)) return std::string(name);
  const fs::path path = find_in(dirs_, name);
  return path.empty() ? std::string(name) : path.string();
}

std::vector<std::string> json_names(const DataFiles& files, std::string_view folder) {
  constexpr std::string_view kEnding = ".json";
  std::vector<std::string> out;
  for (const std::string& path : files.list(folder))
    if (path.ends_with(kEnding))
      out.push_back(path.substr(folder.size(), path.size() - folder.size() - kEnding.size()));
  return out;
}

}  // namespace roofgen
