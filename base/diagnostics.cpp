#include "base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace roofgen::expr {
namespace {

constexpr size_t kExcerptBefore = 70;  // characters shown left and right of the caret; generated or
constexpr size_t kExcerptAfter = 80;   // hostile lines can be megabytes long
constexpr size_t kMaxNotes = 12;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t characters(std::string_view s) { return std::count_if(s.begin(), s.end(), starts_character); }

/// One terminal column per character: tabs and control characters become blanks.
std::string printable(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return out;
}

}  // namespace

Where locate(const Source& source, uint32_t offset) {
  Where where = source.origin;
  if (where.line == 0) return where;
  const std::string_view before = std::string_view(source.text).substr(0, offset);
  const size_t newline = before.rfind('\n');
  if (newline == std::string_view::npos) {
    where.col = std::max(where.col, 1) + static_cast<int>(characters(before));
  } else {
    where.line += static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    where.col = 1 + static_cast<int>(characters(before.substr(newline + 1)));
  }
  return where;
}

Error located_error(const Source& source, Span at, std::string message) {
  const std::string_view text = source.text;
  const size_t begin = std::min<size_t>(at.begin, text.size());
  const size_t newline = begin == 0 ? std::string_view::npos : text.rfind('\n', begin - 1);
  size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
  size_t line_end = std::min(text.find('\n', begin), text.size());
  std::string left = "", right = "";
  if (begin - line_begin > kExcerptBefore) {
    line_begin = begin - kExcerptBefore;
    while (line_begin < begin && !starts_character(text[line_begin])) ++line_begin;
    left = "...";
  }
  if (line_end - begin > kExcerptAfter) {
    line_end = begin + kExcerptAfter;
    while (line_end > begin && !starts_character(text[line_end])) --line_end;
    right = "...";
  }
  const size_t end = std::clamp<size_t>(at.end, begin, line_end);
  const size_t width = std::max<size_t>(characters(text.substr(begin, end - begin)), 1);
  const std::string indent(left.size() + characters(text.substr(line_begin, begin - line_begin)), ' ');

  Error error{Exit::kFailed, std::move(message), locate(source, static_cast<uint32_t>(begin)), {}};
  const std::string number = error.where.line ? std::to_string(error.where.line) : "";
  error.notes.push_back(
      fmt::format("{:>5} | {}{}{}", number, left, printable(text.substr(line_begin, line_end - line_begin)), right));
  error.notes.push_back(fmt::format("      | {}^{}", indent, std::string(width - 1, '~')));
  return error;
}

void add_note(Error& error, std::string note) {
  if (error.notes.size() < kMaxNotes)
    error.notes.push_back(std::move(note));
  else if (error.notes.size() == kMaxNotes)
    error.notes.push_back("...");
}

void fail_at(const Source& source, Span at, std::string message) {
  throw Failure{located_error(source, at, std::move(message))};
}

}  // namespace roofgen::expr
