// The sectored L1 of one SM: 128-byte lines of four sectors, least recently used of the ways of a set goes first.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace roofgen::timing {

class L1Cache {
 public:
  explicit L1Cache(double bytes) : sets_(static_cast<size_t>(bytes / 128 / kWays)), entries_(sets_ * kWays) {}
  /// The sectors of a load that are not there; afterwards they are.
  uint8_t missing(uint64_t line, uint8_t sectors) { return access(line, sectors, 0); }
  /// A store to local memory: its sectors stay until another line takes their place.
  void keep(uint64_t line, uint8_t sectors) {
    if (sets_)
      access(line, sectors, sectors);
    else
      evicted_ += static_cast<uint32_t>(__builtin_popcount(sectors));
  }
  /// Kept sectors that have lost their place since the last call.
  uint32_t take_evicted() { return std::exchange(evicted_, 0); }

 private:
  uint8_t access(uint64_t line, uint8_t sectors, uint8_t kept) {
    if (!sets_) return sectors;
    ++now_;
    Entry* set = &entries_[(line ^ line >> 17) % sets_ * kWays];
    Entry* oldest = set;
    for (Entry* e = set; e < set + kWays; ++e) {
      if (e->line == line && e->stamp) {
        const auto out = static_cast<uint8_t>(sectors & ~e->sectors);
        e->sectors |= sectors;
        e->kept |= kept;
        e->stamp = now_;
        return out;
      }
      if (e->stamp < oldest->stamp) oldest = e;
    }
    evicted_ += static_cast<uint32_t>(__builtin_popcount(oldest->kept));
    *oldest = {line, now_, sectors, kept};
    return sectors;
  }

  static constexpr size_t kWays = 8;
  struct Entry {
    uint64_t line = 0, stamp = 0;
    uint8_t sectors = 0, kept = 0;
  };
  size_t sets_;
  std::vector<Entry> entries_;
  uint64_t now_ = 0;
  uint32_t evicted_ = 0;
};

}  // namespace roofgen::timing
