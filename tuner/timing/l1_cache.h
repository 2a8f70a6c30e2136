// The sectored L1 of one SM: 128-byte lines of four sectors, least recently used of the ways of a set goes first.
#pragma once

#include <cstdint>
#include <vector>

namespace roofgen::timing {

class L1Cache {
 public:
  explicit L1Cache(double bytes) : sets_(static_cast<size_t>(bytes / 128 / kWays)), entries_(sets_ * kWays) {}
  /// The sectors of a request that are not there; afterwards they are.
  uint8_t missing(uint64_t line, uint8_t sectors) {
    if (!sets_) return sectors;
    ++now_;
    Entry* set = &entries_[(line ^ line >> 17) % sets_ * kWays];
    Entry* oldest = set;
    for (Entry* e = set; e < set + kWays; ++e) {
      if (e->line == line && e->stamp) {
        const auto out = static_cast<uint8_t>(sectors & ~e->sectors);
        e->sectors |= sectors;
        e->stamp = now_;
        return out;
      }
      if (e->stamp < oldest->stamp) oldest = e;
    }
    *oldest = {line, now_, sectors};
    return sectors;
  }

 private:
  static constexpr size_t kWays = 8;
  struct Entry {
    uint64_t line = 0, stamp = 0;
    uint8_t sectors = 0;
  };
  size_t sets_;
  std::vector<Entry> entries_;
  uint64_t now_ = 0;
};

}  // namespace roofgen::timing
