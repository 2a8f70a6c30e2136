#include "runtime/sass/taken_shares.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace roofgen::sass {
namespace {

/// Instructions after a conditional exit that are looked at: the exit skips all of them.
constexpr uint32_t kBehindExit = 32;

/// The compiler's name of a file has a folder in one line table, and none in the other.
std::pair<std::string, int> key(const std::string& file, int line) {
  return {std::filesystem::path(file).filename().string(), line};
}

}  // namespace

TakenShare taken_shares(const Code& code, const std::vector<TextLine>& lines, const std::vector<SiteCounts>& sites) {
  // A branch runs as often as the instructions of its line that run most often. A skipped line is entered as often as
  // those that run least often: the others may be in a loop.
  struct Range {
    uint64_t least, most;
  };
  std::map<std::pair<std::string, int>, Range> executions;
  for (const SiteCounts& s : sites) {
    Range& r = executions.try_emplace(key(s.source.file, s.source.line), Range{s.executed, s.executed}).first->second;
    r = {std::min(r.least, s.executed), std::max(r.most, s.executed)};
  }
  const size_t count = std::min(code.instructions.size(), lines.size());
  std::vector<uint64_t> runs(count), entries(count);
  for (size_t i = 0; i < count; ++i)
    if (const auto at = executions.find(key(lines[i].file, lines[i].line)); at != executions.end())
      runs[i] = at->second.most, entries[i] = at->second.least;
  std::map<uint32_t, double> shares;
  for (uint32_t i = 0; i < count; ++i) {
    const Instruction& branch = code.instructions[i];
    const bool exits = branch.opcode->action == Action::kExit && branch.guard.kind != Operand::Kind::kNone;
    if ((!exits && branch.opcode->action != Action::kBra) || !runs[i]) continue;
    const uint32_t end = exits ? std::min(i + 1 + kBehindExit, static_cast<uint32_t>(count)) : branch.target;
    if (end <= i + 1 || end > count) continue;
    std::vector<uint64_t> inside;
    for (uint32_t k = i + 1; k < end; ++k)
      if (lines[k].line && entries[k] <= runs[i] &&
          key(lines[k].file, lines[k].line) != key(lines[i].file, lines[i].line))
        inside.push_back(entries[k]);
    if (inside.empty()) continue;
    const auto middle = inside.begin() + static_cast<std::ptrdiff_t>(inside.size() / 2);
    std::nth_element(inside.begin(), middle, inside.end());
    shares[i] = 1 - static_cast<double>(*middle) / static_cast<double>(runs[i]);
  }
  return [shares = std::move(shares)](uint32_t index) -> std::optional<double> {
    const auto at = shares.find(index);
    return at == shares.end() ? std::nullopt : std::optional(at->second);
  };
}

}  // namespace roofgen::sass
