#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace roofgen {

size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const size_t length = first >= 0xF0 && first < 0xF5   ? 4
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xC2 && first < 0xE0 ? 2
                                                        : 0;
  if (length == 0 || s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, and code points above U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Removes leading and trailing blanks.
std::string trimmed(std::string_view s) {
  while (!s.empty() && (blank(s.front()) || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (blank(s.back()) || s.back() == '\n')) s.remove_suffix(1);
  return std::string(s);
}

/// Iterates over the text and tracks line and column.
class Cursor {
 public:
  Cursor(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}
  bool end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void next() {
    const char c = text_[at_++];
    if (c == '\n')
      ++line_, col_ = 1;
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      ++col_;
  }
  int line() const { return line_; }
  int col() const { return col_; }
  Where where() const { return {file_, line_, col_}; }
  Where where(int line, int col) const { return {file_, line, col}; }
  std::string_view rest_of_line() const { return text_.substr(at_, text_.find('\n', at_) - at_); }

 private:
  std::string_view text_;
  std::string file_;
  size_t at_ = 0;
  int line_ = 1, col_ = 1;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, const TableLimits& limits)
      : text_(text), limits_(limits), cursor_(text_, file) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    cursor_ = Cursor(text_, file);
  }

  Result<std::vector<CellTable>> read() {
    if (text_.size() > limits_.bytes)
      return bad({cursor_.where().file},
                 fmt::format("{} bytes; at most {} were expected", text_.size(), limits_.bytes));
    ROOFGEN_CHECK(utf8());
    return markdown() ? read_markdown() : read_separated();
  }

 private:
  static Error bad(Where where, std::string message) { return {Exit::kUsage, std::move(message), std::move(where)}; }

  Result<void> utf8() const {
    Cursor at = cursor_;
    for (size_t i = 0; i < text_.size();) {
      const size_t length = utf8_length(text_.substr(i));
      if (length == 0)
        return bad(at.where(),
                   fmt::format("byte 0x{:02x} is not text; UTF-8 was expected", static_cast<unsigned char>(text_[i])));
      for (size_t k = 0; k < length; ++k, ++i) at.next();
    }
    return {};
  }

  static bool is_pipe_row(std::string_view line) {
    const std::string s = trimmed(line);
    return s.size() > 1 && s.front() == '|';
  }
  static bool is_dashes(std::string_view line) {
    return is_pipe_row(line) && line.find('-') != std::string_view::npos &&
           line.find_first_not_of("|:- \t\r") == std::string_view::npos;
  }

  /// Whether a `|` row is followed by a row of dashes.
  bool markdown() const {
    std::string_view rest = text_, before;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      if (is_dashes(line) && is_pipe_row(before)) return true;
      before = line;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  }

  void skip_line() {
    while (!cursor_.end() && cursor_.peek() != '\n') cursor_.next();
    if (!cursor_.end()) cursor_.next();
  }

  /// `| a | b |`: a `|` without a backslash ends a cell.
  TableRow pipe_row() {
    TableRow row;
    while (!cursor_.end() && cursor_.peek() != '|') cursor_.next();
    cursor_.next();
    while (!cursor_.end() && cursor_.peek() != '\n') {
      while (!cursor_.end() && blank(cursor_.peek())) cursor_.next();
      if (cursor_.end() || cursor_.peek() == '\n') break;
      TableCell cell{{}, cursor_.line(), cursor_.col()};
      bool closed = false;
      while (!cursor_.end() && cursor_.peek() != '\n') {
        const char c = cursor_.peek();
        if (c == '\\' && cursor_.peek(1) == '|')
          cursor_.next();
        else if (c == '|') {
          closed = true;
          cursor_.next();
          break;
        }
        cell.text += cursor_.peek();
        cursor_.next();
      }
      cell.text = plain(trimmed(cell.text));
      row.push_back(std::move(cell));
      if (!closed) break;
    }
    skip_line();
    return row;
  }

  /// Removes surrounding code and emphasis marks.
  static std::string plain(std::string s) {
    while (s.size() >= 2 && s.front() == s.back() && (s.front() == '`' || s.front() == '*' || s.front() == '_'))
      s = trimmed(s.substr(1, s.size() - 2));
    return s;
  }

  Result<std::vector<CellTable>> read_markdown() {
    std::vector<CellTable> out;
    while (!cursor_.end()) {
      if (!is_pipe_row(cursor_.rest_of_line())) {
        skip_line();
        continue;
      }
      const TableRow head = pipe_row();
      if (cursor_.end() || !is_dashes(cursor_.rest_of_line())) continue;
      skip_line();
      CellTable table;
      table.header = head;
      ROOFGEN_CHECK(within_limits(head));
      while (!cursor_.end() && is_pipe_row(cursor_.rest_of_line())) {
        const Where where = cursor_.where();
        ROOFGEN_CHECK(add(table, pipe_row(), where));
      }
      out.push_back(std::move(table));
    }
    return out;
  }

  /// The most frequent separator in the first non-empty line, outside quotes; a comma when there is none.
  char separator() const {
    Cursor at = cursor_;
    size_t commas = 0, semicolons = 0, tabs = 0;
    for (bool quoted = false; !at.end() && (quoted || at.peek() != '\n'); at.next()) {
      if (at.peek() == '"') quoted = !quoted;
      if (quoted) continue;
      commas += at.peek() == ',';
      semicolons += at.peek() == ';';
      tabs += at.peek() == '\t';
    }
    if (tabs > commas && tabs >= semicolons) return '\t';
    return semicolons > commas ? ';' : ',';
  }

  bool at_blank_line() const { return trimmed(cursor_.rest_of_line()).empty(); }

  Result<std::vector<CellTable>> read_separated() {
    while (!cursor_.end() && at_blank_line()) skip_line();
    if (cursor_.end()) return bad(cursor_.where(), "no table; a header line and rows were expected");
    separator_ = separator();
    CellTable table;
    std::optional<Error> fault;
    ROOFGEN_TRY(table.header, separated_row(fault));
    if (fault) return *fault;
    ROOFGEN_CHECK(within_limits(table.header));
    while (!cursor_.end()) {
      if (at_blank_line() && separator_ != '\t') {
        skip_line();
        continue;
      }
      const Where where = cursor_.where();
      ROOFGEN_TRY(TableRow row, separated_row(fault));
      if (fault) {
        ROOFGEN_CHECK(one_more_row(where));
        table.errors.push_back(*fault);
        fault.reset();
        continue;
      }
      // A line of blanks in a tab-separated table.
      if (row.size() == 1 && row[0].text.empty()) continue;
      ROOFGEN_CHECK(add(table, std::move(row), where));
    }
    return std::vector<CellTable>{std::move(table)};
  }

  /// One record. `fault` receives the error of a malformed record, with the cursor at the next line. An unclosed quote
  /// ends the reading.
  Result<TableRow> separated_row(std::optional<Error>& fault) {
    TableRow row;
    while (true) {
      while (!cursor_.end() && cursor_.peek() != separator_ && blank(cursor_.peek())) cursor_.next();
      TableCell cell{{}, cursor_.line(), cursor_.col()};
      if (!cursor_.end() && cursor_.peek() == '"') {
        ROOFGEN_TRY(cell.text, quoted());
        while (!cursor_.end() && cursor_.peek() != separator_ && blank(cursor_.peek())) cursor_.next();
        if (!cursor_.end() && cursor_.peek() != separator_ && cursor_.peek() != '\n') {
          fault = bad(cursor_.where(),
                      "text after a closing quote; a separator or the end of the line was expected; a quote "
                      "inside a quoted cell is written twice");
          skip_line();
          return row;
        }
      } else {
        while (!cursor_.end() && cursor_.peek() != separator_ && cursor_.peek() != '\n') {
          cell.text += cursor_.peek();
          cursor_.next();
        }
        cell.text = trimmed(cell.text);
      }
      row.push_back(std::move(cell));
      if (cursor_.end()) return row;
      const bool more = cursor_.peek() == separator_;
      cursor_.next();
      if (!more) return row;
    }
  }

  Result<std::string> quoted() {
    const Where open = cursor_.where();
    std::string out;
    for (cursor_.next(); !cursor_.end(); cursor_.next()) {
      if (cursor_.peek() == '"') {
        if (cursor_.peek(1) != '"') {
          cursor_.next();
          return trimmed(out);
        }
        cursor_.next();
      }
      out += cursor_.peek();
    }
    return bad(open, "this quote is never closed");
  }

  /// Counts valid and invalid rows of all tables.
  Result<void> one_more_row(const Where& where) {
    if (++rows_ > limits_.rows) return bad({where.file, where.line}, fmt::format("more than {} rows", limits_.rows));
    return {};
  }

  Result<void> within_limits(const TableRow& row) const {
    if (row.size() > limits_.columns)
      return bad(cursor_.where(row[0].line, 0),
                 fmt::format("{} columns; at most {} were expected", row.size(), limits_.columns));
    for (const TableCell& c : row)
      if (c.text.size() > limits_.cell_bytes)
        return bad(cursor_.where(c.line, c.col),
                   fmt::format("a cell of {} bytes; at most {} were expected", c.text.size(), limits_.cell_bytes));
    return {};
  }

  Result<void> add(CellTable& table, TableRow row, const Where& where) {
    ROOFGEN_CHECK(one_more_row(where));
    if (row.size() != table.header.size()) {
      table.errors.push_back(
          bad(where,
              fmt::format("{} cells; {} were expected, as in the header{}", row.size(), table.header.size(),
                          row.size() > table.header.size() ? "; a cell that holds the separator needs quotes" : "")));
      return {};
    }
    ROOFGEN_CHECK(within_limits(row));
    table.rows.push_back(std::move(row));
    return {};
  }

  std::string_view text_;
  const TableLimits& limits_;
  Cursor cursor_;
  char separator_ = ',';
  size_t rows_ = 0;
};

}  // namespace

Result<std::vector<CellTable>> read_tables(std::string_view text, const std::string& file, const TableLimits& limits) {
  return Reader(text, file, limits).read();
}

Error cell_error(const TableCell& cell, const std::string& file, std::string message) {
  return {Exit::kUsage, std::move(message), {file, cell.line, cell.col}};
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

}  // namespace roofgen
