#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_scan.h"

namespace roofgen {
namespace {

constexpr size_t kMaxBytes = 4 << 20;
constexpr int kMaxDepth = 64;

void move_on(Where& at, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      ++at.line;
      at.col = 1;
    } else {
      ++at.col;
    }
  }
}

Where position(std::string_view text, const std::string& file, size_t offset) {
  Where at{file, 1, 1};
  move_on(at, text.substr(0, offset));
  return at;
}

/// The line of a place with a caret below.
std::vector<std::string> line_with_caret(std::string_view text, const Where& at, size_t offset) {
  constexpr int kWidest = 200;
  const size_t begin = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const size_t first = begin == std::string_view::npos ? 0 : begin + 1;
  const std::string_view line = text.substr(first, text.find('\n', first) - first);
  // A binary file is no text to show.
  const bool readable =
      std::none_of(line.begin(), line.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
  if (!readable || line.size() > kWidest || at.col > kWidest) return {};
  return {"  " + std::string(line), "  " + std::string(static_cast<size_t>(at.col) - 1, ' ') + "^"};
}

std::optional<Error> fault_of(std::string_view text, const std::string& file) {
  const auto fault = JsonScan(text).fault();
  if (!fault) return std::nullopt;
  const Where at = position(text, file, fault->at);
  return Error{Exit::kFailed, fmt::format("not valid JSON: {} was expected", fault->expected), at,
               line_with_caret(text, at, fault->at)};
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
    if (event == Json::parse_event_t::object_start)
      members.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      members.pop_back();
    else if (event == Json::parse_event_t::key && !members.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    out.root_ = Json::parse(text, note);
  } catch (const Json::exception& e) {
    return fault_of(text, file).value_or(Error{Exit::kFailed, e.what(), {file}});
  }
  if (!twice.empty()) {
    Error e = fault_of(text, file).value_or(Error{Exit::kFailed, "", {file}});
    e.message = fmt::format("an object has the member \"{}\" twice", twice);
    return e;
  }
  out.text_ = std::move(text);
  out.file_ = std::move(file);
  return out;
}

Where JsonFile::find(std::string_view token) const {
  const std::string quoted = Json(token).dump();
  const size_t at = text_.find(quoted);
  return at == std::string::npos ? Where{file_} : position(text_, file_, at + 1);
}

std::vector<Where> JsonFile::places() const {
  std::vector<Where> out;
  Where at{file_, 1, 1};
  size_t from = 0;
  for (const size_t item : JsonScan(text_).items_of_list()) {
    move_on(at, std::string_view(text_).substr(from, item - from));
    from = item;
    out.push_back(at);
  }
  return out;
}

Where JsonFile::place(const Json& value, std::string_view member) const {
  JsonScan scan(text_);
  std::optional<size_t> at = scan.find(root_, value, member);
  if (!at && !member.empty()) at = scan.find(root_, value, "");
  return at ? position(text_, file_, *at) : Where{file_};
}

std::vector<std::string> JsonFile::excerpt(const Where& at) const {
  if (at.line <= 0) return {};
  size_t offset = 0;
  for (int line = 1; line < at.line; ++line) offset = text_.find('\n', offset) + 1;
  return line_with_caret(text_, at, offset);
}

}  // namespace roofgen
