#include "tuner/verify/l2_model.h"

#include <algorithm>
#include <iterator>

namespace roofgen {
namespace {

/// Least recently used lines of 128 bytes, sector-filled: a line holds only the sectors requested. Lines are numbered
/// from 0, so that the order is a list in two arrays: a replay visits millions.
class LineCache {
 public:
  LineCache(size_t capacity, uint32_t lines)
      : free_(std::max<size_t>(capacity, 1)), end_(lines), lines_(lines + size_t{1}) {
    lines_[end_] = {end_, end_, 0};
  }

  /// Returns the number of missing sectors among `sectors` (at least one).
  int touch(uint32_t line, uint8_t sectors) {
    Line& entry = lines_[line];
    const int missing = __builtin_popcount(sectors & ~entry.sectors);
    if (entry.sectors != 0) {
      unlink(line);
    } else if (free_ > 0) {
      --free_;
    } else {
      const uint32_t oldest = lines_[end_].before;
      unlink(oldest);
      lines_[oldest].sectors = 0;
    }
    entry.sectors |= sectors;
    Line& end = lines_[end_];
    entry.before = end_;
    entry.after = end.after;
    lines_[end.after].before = line;
    end.after = line;
    return missing;
  }

 private:
  struct Line {
    uint32_t before = 0, after = 0;  ///< in the order of use, newest first; end_ closes the circle
    uint8_t sectors = 0;             ///< 0: not in the cache
  };
  void unlink(uint32_t line) {
    lines_[lines_[line].before].after = lines_[line].after;
    lines_[lines_[line].after].before = lines_[line].before;
  }
  size_t free_;
  uint32_t end_;
  std::vector<Line> lines_;
};

/// The accesses of a traced CTA in order. Lines are numbered: first the lines shared by several traces, equal in all of
/// them, then its own.
struct Visits {
  struct Visit {
    uint32_t line;
    uint8_t sectors;
  };
  std::vector<Visit> visits;
  uint32_t own_lines = 0;
};

std::vector<uint64_t> sorted_lines(const std::vector<LineAccess>& trace) {
  std::vector<uint64_t> lines;
  for (const LineAccess& a : trace) lines.push_back(a.line);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

/// The visits of every trace, and the number of lines that several traces share.
std::pair<std::vector<Visits>, uint32_t> number_lines(const std::vector<std::vector<LineAccess>>& traces) {
  std::vector<uint64_t> seen, common;
  for (const auto& trace : traces) {
    const std::vector<uint64_t> lines = sorted_lines(trace);
    seen.insert(seen.end(), lines.begin(), lines.end());
  }
  std::sort(seen.begin(), seen.end());
  for (size_t i = 1; i < seen.size(); ++i)
    if (seen[i] == seen[i - 1] && (common.empty() || common.back() != seen[i])) common.push_back(seen[i]);
  const auto index = [](const std::vector<uint64_t>& lines, uint64_t line) {
    return static_cast<uint32_t>(std::lower_bound(lines.begin(), lines.end(), line) - lines.begin());
  };
  std::vector<Visits> out;
  for (const auto& trace : traces) {
    std::vector<uint64_t> own;
    const std::vector<uint64_t> lines = sorted_lines(trace);
    std::set_difference(lines.begin(), lines.end(), common.begin(), common.end(), std::back_inserter(own));
    Visits& visits = out.emplace_back();
    visits.own_lines = static_cast<uint32_t>(own.size());
    for (const LineAccess& a : trace) {
      const uint32_t at = index(common, a.line);
      const bool shared = at < common.size() && common[at] == a.line;
      visits.visits.push_back({shared ? at : static_cast<uint32_t>(common.size()) + index(own, a.line), a.sectors});
    }
  }
  return {std::move(out), static_cast<uint32_t>(common.size())};
}

/// Keeps one line in n of the traces, so that a wave has about kReplayLimit accesses, and returns n. All visits to a
/// kept line stay: a cache with n times fewer lines then has the same miss ratio.
uint64_t sample_lines(std::vector<std::vector<LineAccess>>& traces, uint64_t wave_ctas) {
  uint64_t accesses = 0;
  for (const auto& t : traces) accesses += t.size();
  const uint64_t sample = accesses * wave_ctas / traces.size() / kReplayLimit + 1;
  if (sample == 1) return sample;
  for (auto& t : traces)
    std::erase_if(t, [&](const LineAccess& a) { return ((a.line * 0x9e3779b97f4a7c15u) >> 33) % sample != 0; });
  return sample;
}

}  // namespace

double wave_miss_ratio(std::vector<std::vector<LineAccess>> traces, uint64_t wave_ctas, uint64_t group_ctas,
                       double l2_bytes) {
  if (traces.empty() || wave_ctas == 0) return 1;
  const uint64_t sample = sample_lines(traces, wave_ctas);
  const auto [traced, common] = number_lines(traces);
  // The lines of the wave: common ones once for each group, where one of its CTAs touches them, others once for each
  // CTA.
  std::vector<std::vector<uint32_t>> line_of(wave_ctas);
  std::vector<std::pair<uint64_t, uint32_t>> of_group(common,
                                                      {0, 0});  // the last group that touched it, and its line there
  uint32_t lines = 0;
  for (uint64_t cta = 0; cta < wave_ctas; ++cta) {
    const Visits& trace = traced[cta % traced.size()];
    const uint64_t group = cta / std::max<uint64_t>(group_ctas, 1) + 1;
    const uint32_t own = lines;
    lines += trace.own_lines;
    for (const auto& visit : trace.visits) {
      if (visit.line < common && of_group[visit.line].first != group) of_group[visit.line] = {group, lines++};
      line_of[cta].push_back(visit.line < common ? of_group[visit.line].second : own + visit.line - common);
    }
  }
  LineCache cache(static_cast<size_t>(kL2Usable * l2_bytes / 128 / static_cast<double>(sample)), lines);
  std::vector<uint8_t> known(lines);
  uint64_t missed = 0, unique = 0;
  size_t longest = 0;
  for (const auto& t : traces) longest = std::max(longest, t.size());
  for (size_t step = 0; step < longest; ++step)
    for (uint64_t cta = 0; cta < wave_ctas; ++cta) {
      const auto& visits = traced[cta % traced.size()].visits;
      if (step >= visits.size()) continue;
      const uint32_t line = line_of[cta][step];
      const uint8_t sectors = visits[step].sectors;
      missed += static_cast<uint64_t>(cache.touch(line, sectors));
      unique += static_cast<uint64_t>(__builtin_popcount(sectors & ~known[line]));
      known[line] |= sectors;
    }
  return unique ? static_cast<double>(missed) / static_cast<double>(unique) : 1;
}

}  // namespace roofgen
