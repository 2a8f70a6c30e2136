#include "generator/jinja/output.h"

namespace roofgen::jinja {

void OutputText::append(std::string_view text, const std::string& file, int line, int advance) {
  text_ += text;
  if (!tracked_) return;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view part = text.substr(0, newline);
    const bool blank = part.find_first_not_of(" \t") == part.npos;
    if (!line_open_)
      origins_.push_back({&file, line, blank});
    else if (origins_.back().blank && !blank)
      origins_.back() = {&file, line, false};
    line_open_ = newline == text.npos;
    if (line_open_) return;
    text.remove_prefix(newline + 1);
    line += advance;
  }
}

LineMap OutputText::line_map() const {
  LineMap map;
  map.lines.reserve(origins_.size());
  for (const Origin& o : origins_) map.lines.push_back({*o.file, o.line, 0});
  return map;
}

}  // namespace roofgen::jinja
