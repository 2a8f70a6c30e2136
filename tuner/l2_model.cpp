#include "tuner/l2_model.h"

#include <algorithm>
#include <list>
#include <unordered_map>

namespace roofgen {
namespace {

/// Least recently used lines of 128 bytes, sector-filled: a line holds only the sectors requested.
class LineCache {
 public:
  explicit LineCache(size_t lines) : capacity_(std::max<size_t>(lines, 1)) {}

  /// Returns how many of `sectors` were not there.
  int touch(uint64_t key, uint8_t sectors) {
    auto it = where_.find(key);
    if (it == where_.end()) {
      if (order_.size() == capacity_) {
        where_.erase(order_.back().key);
        order_.pop_back();
      }
      order_.push_front({key, sectors});
      where_[key] = order_.begin();
      return __builtin_popcount(sectors);
    }
    Entry& entry = *it->second;
    const int missing = __builtin_popcount(sectors & ~entry.sectors);
    entry.sectors |= sectors;
    order_.splice(order_.begin(), order_, it->second);
    return missing;
  }

 private:
  struct Entry {
    uint64_t key;
    uint8_t sectors;
  };
  size_t capacity_;
  std::list<Entry> order_;
  std::unordered_map<uint64_t, std::list<Entry>::iterator> where_;
};

/// Lines of more than one sampled CTA, sorted.
std::vector<uint64_t> shared_lines(const std::vector<std::vector<LineAccess>>& traces) {
  std::vector<std::pair<uint64_t, size_t>> seen;
  for (size_t i = 0; i < traces.size(); ++i) {
    std::vector<uint64_t> lines;
    for (const LineAccess& a : traces[i]) lines.push_back(a.line);
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    for (uint64_t line : lines) seen.emplace_back(line, i);
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint64_t> shared;
  for (size_t i = 1; i < seen.size(); ++i)
    if (seen[i].first == seen[i - 1].first && (shared.empty() || shared.back() != seen[i].first))
      shared.push_back(seen[i].first);
  return shared;
}

/// Thins the traces to one line in so many that a wave has about kReplayLimit accesses, and says in how many. Lines
/// are chosen by number, so that all visits to a line stay: a cache of as many times fewer lines misses as often.
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

double wave_miss_ratio(std::vector<std::vector<LineAccess>> traces, uint64_t wave_ctas, uint64_t group_ctas, double l2_bytes) {
  if (traces.empty() || wave_ctas == 0) return 1;
  const uint64_t sample = sample_lines(traces, wave_ctas);
  const std::vector<uint64_t> shared = shared_lines(traces);
  // A line key is the line with its owner above bit 40: device addresses stay below 2^47, so a
  // line number stays below 2^40.
  const auto key = [&](uint64_t cta, uint64_t line) {
    const bool common = std::binary_search(shared.begin(), shared.end(), line);
    const uint64_t owner = common ? cta / std::max<uint64_t>(group_ctas, 1) : (uint64_t{1} << 23) | cta;
    return line ^ (owner << 40);
  };
  LineCache cache(static_cast<size_t>(kL2Usable * l2_bytes / 128 / static_cast<double>(sample)));
  std::unordered_map<uint64_t, uint8_t> distinct;
  uint64_t missed = 0, unique = 0;
  size_t longest = 0;
  for (const auto& t : traces) longest = std::max(longest, t.size());
  for (size_t step = 0; step < longest; ++step)
    for (uint64_t cta = 0; cta < wave_ctas; ++cta) {
      const auto& trace = traces[cta % traces.size()];
      if (step >= trace.size()) continue;
      const LineAccess& access = trace[step];
      const uint64_t k = key(cta, access.line);
      missed += static_cast<uint64_t>(cache.touch(k, access.sectors));
      uint8_t& known = distinct[k];
      unique += static_cast<uint64_t>(__builtin_popcount(access.sectors & ~known));
      known |= access.sectors;
    }
  return unique ? static_cast<double>(missed) / static_cast<double>(unique) : 1;
}

}  // namespace roofgen
