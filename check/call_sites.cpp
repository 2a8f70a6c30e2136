#include "check/call_sites.h"

#include <algorithm>
#include <charconv>

namespace roofgen::check {
namespace {

/// Removes and returns the first word of the line; "" at its end.
std::string_view word(std::string_view& line) {
  const size_t begin = line.find_first_not_of(" \t,");
  if (begin == line.npos) return line = {};
  const size_t end = std::min(line.find_first_of(" \t,", begin), line.size());
  const std::string_view out = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return out;
}

uint32_t number(std::string_view text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

CallSites::CallSites(std::string_view ptx, const std::function<bool(const std::string& file)>& passed_over) {
  std::map<Place, size_t> seen;
  const auto place = [](std::string_view& line) {
    const uint32_t file = number(word(line)), at = number(word(line));
    return Place{file, at, number(word(line))};
  };
  int ptx_line = 0;
  while (!ptx.empty()) {
    ++ptx_line;
    const size_t end = std::min(ptx.find('\n'), ptx.size());
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    const std::string_view directive = word(line);
    if (directive == ".file") {
      const uint32_t id = number(word(line));
      const size_t open = line.find('"'), close = line.find('"', open + 1);
      if (open != line.npos && close != line.npos) files_[id] = std::string(line.substr(open + 1, close - open - 1));
    } else if (directive == ".loc") {
      Loc loc{ptx_line, place(line), {}, 0, {}};
      while (!line.empty())
        if (word(line) == "inlined_at") loc.inlined_at = place(line);
      if (const auto caller = seen.find(loc.inlined_at); caller != seen.end()) loc.outer = caller->second;
      locs_.push_back(loc);
      seen[loc.at] = locs_.size();
    }
  }
  // PTX names its files at the end, so a second pass is needed. An outer .loc always comes before the inner one.
  const auto counts = [&](const Place& p) {
    const auto file = files_.find(std::get<0>(p));
    return file != files_.end() && std::get<1>(p) != 0 && !passed_over(file->second);
  };
  for (Loc& loc : locs_) {
    if (counts(loc.at))
      loc.counts = loc.at;
    else if (loc.outer)
      loc.counts = locs_[loc.outer - 1].counts;
    else if (counts(loc.inlined_at))
      loc.counts = loc.inlined_at;
  }
}

Where CallSites::of(int ptx_line) const {
  const auto after =
      std::upper_bound(locs_.begin(), locs_.end(), ptx_line, [](int line, const Loc& l) { return line < l.ptx_line; });
  if (after == locs_.begin()) return {};
  const auto [file, line, column] = std::prev(after)->counts;
  if (line == 0) return {};
  return {files_.at(file), static_cast<int>(line), static_cast<int>(column)};
}

}  // namespace roofgen::check
