#include "runtime/sim/call_sites.h"

#include <algorithm>
#include <charconv>

namespace roofgen::sim {
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

CallSites::CallSites(std::string text, const std::function<bool(const std::string& file)>& passed_over)
    : ptx_(std::move(text)), passed_over_(passed_over) {
  std::string_view ptx = ptx_;
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
      Loc loc{ptx_line, place(line), {}, 0, {}, {}};
      while (!line.empty()) {
        const std::string_view key = word(line);
        if (key == "function_name") loc.function = word(line);
        if (key == "inlined_at") loc.inlined_at = place(line);
      }
      if (const auto caller = seen.find(loc.inlined_at); caller != seen.end()) loc.outer = caller->second;
      locs_.push_back(loc);
      seen[loc.at] = locs_.size();
    }
  }
  // PTX names its files at the end, so a second pass is needed. An outer .loc always comes before the inner one.
  for (Loc& loc : locs_) {
    if (counts(loc.at))
      loc.counts = loc.at;
    else if (loc.outer)
      loc.counts = locs_[loc.outer - 1].counts;
    else if (counts(loc.inlined_at))
      loc.counts = loc.inlined_at;
  }
}

bool CallSites::counts(const Place& p) const {
  const auto file = files_.find(std::get<0>(p));
  return file != files_.end() && std::get<1>(p) != 0 && !passed_over_(file->second);
}

Where CallSites::where(const Place& place) const {
  const auto [file, line, column] = place;
  if (line == 0) return {};
  return {files_.at(file), static_cast<int>(line), static_cast<int>(column)};
}

const CallSites::Loc* CallSites::loc_of(int ptx_line) const {
  const auto after =
      std::upper_bound(locs_.begin(), locs_.end(), ptx_line, [](int line, const Loc& l) { return line < l.ptx_line; });
  return after == locs_.begin() ? nullptr : &*std::prev(after);
}

Where CallSites::of(int ptx_line) const {
  const Loc* loc = loc_of(ptx_line);
  return loc ? where(loc->counts) : Where{};
}

CallSites::Inlined CallSites::inlined(int ptx_line) const {
  Inlined out;
  const Loc* loc = loc_of(ptx_line);
  while (loc && !counts(loc->at)) loc = loc->outer ? &locs_[loc->outer - 1] : nullptr;
  if (!loc) return out;
  out.function = function_name(loc->function);
  while (out.callers.size() < kMostCallers && counts(loc->inlined_at)) {
    out.callers.push_back(where(loc->inlined_at));
    if (!loc->outer) break;
    loc = &locs_[loc->outer - 1];
  }
  return out;
}

/// The text at "label" or "label+offset" in the section of strings: ".b8 95,90,0".
std::string CallSites::function_name(std::string_view name) const {
  const size_t plus = std::min(name.find('+'), name.size());
  const std::string label = "\n" + std::string(name.substr(0, plus)) + ":";
  const size_t at = plus ? ptx_.find(label) : ptx_.npos;
  std::string out;
  if (at == ptx_.npos) return out;
  std::string_view rest = std::string_view(ptx_).substr(at + label.size());
  for (size_t skip = plus < name.size() ? number(name.substr(plus + 1)) : 0; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string_view first = word(line);
    if (!first.empty() && first != ".b8" && !first.ends_with(":")) return "";
    while (!line.empty()) {
      const std::string_view byte = word(line);
      if (byte.empty() || (skip > 0 && skip--)) continue;
      if (byte == "0") return out;
      out += static_cast<char>(number(byte));
    }
  }
  return "";
}

}  // namespace roofgen::sim
