#include "generator/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include <set>

#include "generator/generate.h"

namespace roofgen {
namespace {

constexpr size_t kMaxBytes = 4 << 20;
constexpr int kMaxDepth = 64;

Where position(std::string_view text, const std::string& file, size_t offset) {
  Where at{file, 1, 1};
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++at.line;
      at.col = 1;
    } else {
      ++at.col;
    }
  }
  return at;
}

int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<JsonFile> JsonFile::parse(std::string text, std::string file) {
  if (text.size() > kMaxBytes)
    return Error{Exit::kFailed, fmt::format("file of {} bytes; the limit is {}", text.size(), kMaxBytes), {file}};
  if (nesting(text) > kMaxDepth)
    return Error{Exit::kFailed, fmt::format("nested deeper than {} levels", kMaxDepth), {file}};
  JsonFile out;
  std::vector<std::set<std::string>> members;  // of the objects that are open
  std::string twice;
  const auto note = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) members.emplace_back();
    else if (event == Json::parse_event_t::object_end) members.pop_back();
    else if (event == Json::parse_event_t::key && !members.back().insert(value.get<std::string>()).second) twice = value.get<std::string>();
    return true;
  };
  try {
    out.root_ = Json::parse(text, note);
  } catch (const Json::parse_error& e) {
    const Where at = position(text, file, e.byte ? e.byte - 1 : 0);
    const size_t begin = text.rfind('\n', e.byte ? e.byte - 1 : 0);
    const size_t first = e.byte == 0 || begin == std::string::npos ? 0 : begin + 1;
    std::string line = text.substr(first, text.find('\n', first) - first);
    std::vector<std::string> notes;
    // A binary file is no text to show.
    const bool readable = std::none_of(line.begin(), line.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
    if (readable && line.size() <= 200 && at.col <= 200) notes = {"  " + line, "  " + std::string(at.col - 1, ' ') + "^"};
    return Error{Exit::kFailed, "not valid JSON here", at, notes};
  } catch (const Json::exception& e) {
    return Error{Exit::kFailed, e.what(), {file}};
  }
  out.text_ = std::move(text);
  out.file_ = std::move(file);
  if (!twice.empty()) return Error{Exit::kFailed, fmt::format("an object has the member \"{}\" twice", twice), out.find(twice)};
  return out;
}

Where JsonFile::find(std::string_view token) const {
  const std::string quoted = Json(token).dump();
  const size_t at = text_.find(quoted);
  return at == std::string::npos ? Where{file_} : position(text_, file_, at + 1);
}

std::vector<std::string> json_names(const DataFiles& files, std::string_view folder) {
  constexpr std::string_view kEnding = ".json";
  std::vector<std::string> out;
  for (const std::string& path : files.list(folder))
    if (path.ends_with(kEnding)) out.push_back(path.substr(folder.size(), path.size() - folder.size() - kEnding.size()));
  return out;
}

}  // namespace roofgen
