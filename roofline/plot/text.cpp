#include "roofline/plot/text.h"

#include <algorithm>

namespace roofgen::plot {

namespace {

struct Spelling {
  std::string_view sign, spelled;
};
constexpr Spelling kSpellings[] = {{"\u2192", "->"}, {"\u00d7", "x"}, {"\u00b5", "u"}, {"\u03bc", "u"},
                                   {"\u2013", "-"},  {"\u2014", "-"}, {"\u00b7", "."}, {"\u2026", "..."}};

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string padded(std::string text, int width, bool right) {
  const int missing = std::max(0, width - columns(text));
  return right ? std::string(missing, ' ') + text : text + std::string(missing, ' ');
}

std::string without_trailing_space(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

constexpr int kColumnGap = 2, kMinWrapped = 16;

/// Each row as lines of "head: cell" below its first two cells, for narrow terminals.
std::string stacked(const std::vector<Column>& head, const std::vector<std::vector<std::string>>& rows, int width) {
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].empty()) continue;
      const std::string item = head[i].head.empty() ? row[i] : head[i].head + ": " + row[i];
      const int indent = out.empty() || line.empty() ? 0 : 2;
      if (!line.empty() && columns(line) + 3 + columns(item) <= width) {
        line += (i == 1 ? "  " : " | ") + item;
        continue;
      }
      if (!line.empty()) out += line + "\n";
      const std::vector<std::string> lines = wrap(item, width - indent);
      for (size_t n = 0; n + 1 < lines.size(); ++n) out += std::string(indent, ' ') + lines[n] + "\n";
      line = std::string(indent, ' ') + (lines.empty() ? "" : lines.back());
    }
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

}  // namespace

std::string ascii(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto spelling = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                       [&](const Spelling& s) { return text.substr(i).starts_with(s.sign); });
    if (spelling != std::end(kSpellings)) {
      out += spelling->spelled;
      i += spelling->sign.size();
      continue;
    }
    const char c = text[i++];
    if (c >= 0x20 && c < 0x7f) {
      out += c;
      continue;
    }
    out += c == '\n' || c == '\t' ? ' ' : '?';
    while (i < text.size() && is_continuation(text[i])) ++i;
  }
  return out;
}

int columns(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::vector<std::string> wrap(std::string_view text, int width) {
  width = std::max(1, width);
  std::vector<std::string> lines;
  std::string line;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    std::string_view word = text.substr(0, text.find(' '));
    if (!line.empty() && line.size() + 1 + word.size() > static_cast<size_t>(width)) {
      lines.push_back(std::move(line));
      line.clear();
    }
    word = word.substr(0, static_cast<size_t>(width));
    text.remove_prefix(word.size());
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string paragraph(std::string_view text, int width, int indent) {
  std::string out;
  for (const std::string& line : wrap(text, width - indent)) out += std::string(indent, ' ') + line + "\n";
  return out;
}

std::string text_table(const std::vector<Column>& head, const std::vector<std::vector<std::string>>& rows, int width) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) {
    cells.emplace_back();
    for (size_t i = 0; i < head.size(); ++i) cells.back().push_back(i < row.size() ? ascii(row[i]) : "");
  }
  std::vector<int> widths;
  int total = -kColumnGap;
  for (size_t i = 0; i < head.size(); ++i) {
    int widest = columns(head[i].head);
    for (const auto& row : cells) widest = std::max(widest, columns(row[i]));
    widths.push_back(widest);
    total += widest + kColumnGap;
  }
  while (total > width) {
    size_t widest = head.size();
    for (size_t i = 0; i < head.size(); ++i)
      if (!head[i].right && widths[i] > kMinWrapped && (widest == head.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == head.size()) return stacked(head, cells, width);
    --widths[widest];
    --total;
  }
  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t i = 0; i < head.size(); ++i)
      line += padded(cell(i), widths[i], head[i].right) + std::string(kColumnGap, ' ');
    out += without_trailing_space(std::move(line)) + "\n";
  };
  add_line([&](size_t i) { return head[i].head; });
  for (const auto& row : cells) {
    std::vector<std::vector<std::string>> wrapped;
    size_t lines = 1;
    for (size_t i = 0; i < head.size(); ++i) {
      wrapped.push_back(columns(row[i]) > widths[i] ? wrap(row[i], widths[i]) : std::vector<std::string>{row[i]});
      lines = std::max(lines, wrapped.back().size());
    }
    for (size_t n = 0; n < lines; ++n)
      add_line([&](size_t i) { return n < wrapped[i].size() ? wrapped[i][n] : std::string(); });
  }
  return out;
}

std::string styled(const std::string& text, std::string_view style) {
  if (style.empty()) return text;
  return "\x1b[" + std::string(style) + "m" + text + "\x1b[0m";
}

}  // namespace roofgen::plot
