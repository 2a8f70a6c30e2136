// Text tables with columns as wide as their contents.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

/// What text for people has at most.
inline constexpr size_t kTextColumns = 100;

/// Each line that is longer than `most` is broken at spaces; what follows begins below column `indent`. Longer words
/// stay whole.
inline std::string wrapped(std::string_view text, size_t indent, size_t most = kTextColumns) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (size_t before = 0; before + line.size() > most; before = indent) {
      const size_t first = line.find_first_not_of(' ');
      size_t at = line.rfind(' ', most - before);
      if (at == std::string_view::npos || at <= first + (before == 0 ? indent : 0)) at = line.find(' ', most - before);
      if (at == std::string_view::npos) break;
      out += std::string(line.substr(0, at)) + "\n" + std::string(indent, ' ');
      line.remove_prefix(at + 1);
    }
    out += std::string(line) + "\n";
  }
  return out;
}

/// Cells are right-aligned, except in columns marked `left`.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : left_(head.size(), false) { rows_.push_back(std::move(head)); }
  TextTable& left(size_t column) {
    left_[column] = true;
    return *this;
  }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() == 1; }
  /// Where the columns are wider than `most` together: the widest column of text is broken at spaces. Without one the
  /// table comes in parts of about one width, each of which begins with the first `keys` columns.
  std::string str(size_t most = kTextColumns, size_t keys = 1) const {
    const std::vector<size_t> width = widths();
    size_t total = 0, text = 0;
    for (size_t i = 0; i < width.size(); ++i) {
      total += width[i];
      if (left_[i] && (!left_[text] || width[i] > width[text])) text = i;
    }
    const size_t others = total - width[text], word = longest_word(text);
    const bool is_address = word + width[0] > most;  // which no layout has room for
    if (left_[text] && total > most + kGap.size() && others + kLeastText <= most &&
        (others + word <= most || is_address))
      return with_broken_text(text, most - others).str(1 << 20, keys);
    size_t whole = 0, of_keys = 0;
    for (size_t i = 0; i < width.size(); ++i) (i < keys ? of_keys : whole) += width[i];
    const size_t line = most + kGap.size(), room = line > of_keys ? line - of_keys : 1;
    const size_t parts = (whole + room - 1) / room, share = (whole + parts - 1) / std::max<size_t>(parts, 1);
    std::string out;
    for (size_t next = keys, done = 0; next < width.size() || out.empty();) {
      std::vector<size_t> columns;
      for (size_t i = 0; i < keys; ++i) columns.push_back(i);
      size_t used = 0;
      const size_t first = next;
      const auto fits = [&] { return next == first || (used + width[next] <= room && used < share); };
      for (; next < width.size() && fits(); ++next) {
        columns.push_back(next);
        used += width[next];
      }
      out += (done++ > 0 ? "\n" : "") + part(columns, width);
    }
    return out;
  }

 private:
  static constexpr std::string_view kGap = "  ";
  static constexpr size_t kLeastText = 12;  ///< columns for text that is broken

  /// Of each column, and the gap after it.
  std::vector<size_t> widths() const {
    std::vector<size_t> width(left_.size(), 0);
    for (const auto& r : rows_)
      for (size_t i = 0; i < r.size(); ++i) width[i] = std::max(width[i], r[i].size() + kGap.size());
    return width;
  }

  size_t longest_word(size_t column) const {
    size_t longest = 0;
    for (const auto& r : rows_)
      for (size_t begin = 0; column < r.size() && begin < r[column].size();) {
        const size_t end = std::min(r[column].find(' ', begin), r[column].size());
        longest = std::max(longest, end - begin);
        begin = end + 1;
      }
    return longest;
  }

  /// The table with a column in lines of `room` characters. In the first one, a name that goes on is indented.
  TextTable with_broken_text(size_t column, size_t room) const {
    TextTable out = *this;
    out.rows_.clear();
    for (std::vector<std::string> r : rows_) {
      std::string lines = column < r.size() ? wrapped(r[column], column == 0 ? 2 : 0, room) : "";
      if (lines.empty()) out.rows_.push_back(r);
      for (size_t end; (end = lines.find('\n')) != std::string::npos; lines.erase(0, end + 1)) {
        r[column] = lines.substr(0, end);
        out.rows_.push_back(r);
        std::fill(r.begin(), r.end(), "");
      }
    }
    return out;
  }

  std::string part(const std::vector<size_t>& columns, const std::vector<size_t>& width) const {
    std::string out;
    for (const auto& r : rows_) {
      std::string line;
      for (const size_t i : columns) {
        const std::string cell = i < r.size() ? r[i] : "";
        const size_t own = width[i] - kGap.size();
        line += left_[i] ? fmt::format("{:<{}}{}", cell, own, kGap) : fmt::format("{:>{}}{}", cell, own, kGap);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

}  // namespace roofgen
