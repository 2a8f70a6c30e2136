// The instruction cache of one SM: lines of 128 bytes, the least recently used goes first. A miss fetches its line and
// the next one from L2, one line after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace roofgen::timing {

class InstructionCache {
 public:
  static constexpr uint32_t kInstructionsPerLine = 8;

  /// `bytes` 0: everything hits.
  InstructionCache(double bytes, size_t instructions, double latency, double cycles_per_line)
      : capacity_(static_cast<size_t>(bytes / 128)),
        lines_(instructions / kInstructionsPerLine + 2),
        latency_(latency),
        cycles_per_line_(cycles_per_line) {}

  /// When the line can be read; never before `now`.
  double ready(uint32_t line, double now) {
    if (capacity_ == 0 || lines_.size() <= capacity_) return now;
    if (!lines_[line].stamp) {
      fetch(line, now);
      if (line + 1 < lines_.size() && !lines_[line + 1].stamp) fetch(line + 1, now);
      ++misses_;
    }
    lines_[line].stamp = ++clock_;
    return std::max(now, lines_[line].ready);
  }
  uint64_t misses() const { return misses_; }

 private:
  struct Line {
    uint64_t stamp = 0;  ///< of the last use; 0: not there
    double ready = 0;
  };

  void fetch(uint32_t line, double now) {
    if (held_ >= capacity_) {
      auto oldest = lines_.end();
      for (auto i = lines_.begin(); i != lines_.end(); ++i)
        if (i->stamp && (oldest == lines_.end() || i->stamp < oldest->stamp)) oldest = i;
      oldest->stamp = 0;
      --held_;
    }
    const double begin = std::max(now, free_);
    free_ = begin + cycles_per_line_;
    lines_[line] = {++clock_, begin + latency_};
    ++held_;
  }

  size_t capacity_, held_ = 0;
  std::vector<Line> lines_;
  double latency_, cycles_per_line_, free_ = 0;
  uint64_t clock_ = 0, misses_ = 0;
};

}  // namespace roofgen::timing
