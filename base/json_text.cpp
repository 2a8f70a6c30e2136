#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_scan.h"

namespace roofgen {
namespace {

constexpr int kMaxDepth = 64;

Error at_byte(const Source& source, size_t offset, std::string message) {
  const uint32_t at = static_cast<uint32_t>(offset);
  return located_error(source, {at, at}, std::move(message));
}

std::optional<Error> fault_of(const Source& source) {
  const auto fault = JsonScan(source.text).fault();
  if (!fault) return std::nullopt;
  return at_byte(source, fault->at, fmt::format("not valid JSON: {} was expected", fault->expected));
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

Result<JsonFile> JsonFile::parse(std::string text, std::string file, size_t most) {
  if (text.size() > most)
    return Error{Exit::kFailed, fmt::format("file of {} bytes; the limit is {}", text.size(), most), {file}};
  if (nesting(text) > kMaxDepth)
    return Error{Exit::kFailed, fmt::format("nested deeper than {} levels", kMaxDepth), {file}};
  JsonFile out;
  out.source_ = {std::move(text), {file, 1, 1}};
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
    out.root_ = Json::parse(out.source_.text, note);
  } catch (const Json::exception& e) {
    return fault_of(out.source_).value_or(Error{Exit::kFailed, e.what(), {file}});
  }
  if (!twice.empty()) {
    Error e = fault_of(out.source_).value_or(Error{Exit::kFailed, "", {file}});
    e.message = fmt::format("an object has the member \"{}\" twice", twice);
    return e;
  }
  return out;
}

Where JsonFile::find(std::string_view token) const {
  const size_t at = source_.text.find(json_line(Json(token)));
  return at == std::string::npos ? Where{file()} : locate(source_, static_cast<uint32_t>(at + 1));
}

/// In one pass over the text, which may be a list of very many items in one line.
std::vector<Where> JsonFile::places() const {
  std::vector<Where> out;
  Where at = source_.origin;
  size_t from = 0;
  for (const size_t item : JsonScan(source_.text).items_of_list()) {
    for (; from < item; ++from) {
      const char c = source_.text[from];
      if (c == '\n')
        at = {at.file, at.line + 1, 1};
      else if ((c & 0xC0) != 0x80)
        ++at.col;
    }
    out.push_back(at);
  }
  return out;
}

Where JsonFile::place(const Json& value, std::string_view member) const {
  JsonScan scan(source_.text);
  std::optional<size_t> at = scan.find(root_, value, member);
  if (!at && !member.empty()) at = scan.find(root_, value, "");
  return at ? locate(source_, static_cast<uint32_t>(*at)) : Where{file()};
}

std::vector<std::string> JsonFile::excerpt(const Where& at) const {
  if (at.line <= 0) return {};
  size_t offset = 0;
  for (int line = 1; line < at.line; ++line) offset = source_.text.find('\n', offset) + 1;
  for (int column = 1; column < at.col; ++column) do
      ++offset;
    while (offset < source_.text.size() && (source_.text[offset] & 0xC0) == 0x80);
  return at_byte(source_, offset, "").notes;
}

}  // namespace roofgen
