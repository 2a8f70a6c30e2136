#include "runtime/compile/headers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/compile/built_in_headers.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;

// The closure of cuda_fp16.h and cuda_bf16.h has about 40 files; the limits bound the memory for sources with far more
// headers.
constexpr size_t kMaxHeaders = 1000;
constexpr size_t kMaxHeaderBytes = size_t{8} << 20;

std::string_view skip_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

/// Names in `#include <x>` and `#include "x"` lines, as written.
std::vector<std::string> included_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = skip_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() != '#') continue;
    line = skip_blanks(line.substr(1));
    if (line.substr(0, 7) != "include") continue;
    line = skip_blanks(line.substr(7));
    if (line.empty() || (line.front() != '<' && line.front() != '"')) continue;
    size_t close = line.find(line.front() == '<' ? '>' : '"', 1);
    if (close != std::string_view::npos) names.emplace_back(line.substr(1, close - 1));
  }
  return names;
}

/// Accepts only relative names that stay below the include directory.
bool stays_inside(const std::string& name) {
  fs::path path(name);
  if (path.is_absolute()) return false;
  for (const fs::path& part : path)
    if (part == "..") return false;
  return true;
}

}  // namespace

const std::string* HeaderSet::load(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto [at, fresh] = texts_.try_emplace(name);
  if (!fresh || !stays_inside(name)) return at->second.get();
  const std::string redirected = redirected_header(name, [&](const std::string& header) {
    std::error_code error;
    const fs::path dir(include_dir_);
    return !include_dir_.empty() &&
           (fs::is_regular_file(dir / "cccl" / header, error) || fs::is_regular_file(dir / header, error));
  });
  if (!redirected.empty()) {
    at->second = std::make_unique<std::string>(redirected);
    return at->second.get();
  }
  for (const char* below : {"", "cccl"}) {
    if (include_dir_.empty()) break;
    fs::path path = fs::path(include_dir_) / below / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMaxHeaderBytes || error) continue;
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    at->second = std::make_unique<std::string>(std::move(text).str());
    break;
  }
  if (const std::string* text = built_in_header(name); text && !at->second)
    at->second = std::make_unique<std::string>(*text);
  return at->second.get();
}

Headers HeaderSet::closure(std::string_view source) const {
  // NVRTC looks headers up by the name in the #include line alone, whichever file contains that line. A name relative
  // to its file is therefore passed unchanged, with the text of the file that it refers to.
  struct Wanted {
    std::string name, path;
  };
  std::vector<Wanted> waiting;
  std::set<std::string> seen;
  const auto want = [&](std::string_view text, const fs::path& directory) {
    for (const std::string& name : included_names(text)) {
      if (!seen.insert(name).second) continue;
      std::string beside = (directory / name).lexically_normal().string();
      waiting.push_back({name, directory.empty() || !load(beside) ? name : std::move(beside)});
    }
  };
  want(source, {});
  Headers headers;
  while (!waiting.empty() && headers.size() < kMaxHeaders) {
    const Wanted next = std::move(waiting.back());
    waiting.pop_back();
    const std::string* text = load(next.path);
    if (!text) continue;
    headers.emplace_back(next.name, *text);
    want(*text, fs::path(next.path).parent_path());
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

}  // namespace roofgen
