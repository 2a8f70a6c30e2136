// Arrivals of some lanes of a warp at mbarriers. The clocks of shared_shadow.h are of whole warps: a warp that sees an
// arrival has seen all accesses that the arriving warp made before. But an arrival releases only the accesses of its
// own lane, and those of lanes that synchronised with it after them (bar.warp.sync, barriers of the CTA). The accesses
// of other lanes are the exceptions, which are recorded here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/sim/shared_shadow.h"
#include "runtime/sim/word_log.h"

namespace roofgen::sim {

class LaneReleases {
 public:
  struct Release {
    uint32_t stamp;            ///< of the warp, at the arrival
    uint32_t whole;            ///< accesses up to this stamp were released by all lanes
    uint32_t lanes;            ///< that have arrived since
    WordLog::LaneCounts seen;  ///< synchronisations of each lane that order its accesses before the arrival
    bool covers(const WordLog::Last& access) const {
      if (access.count <= seen[access.lane]) return true;
      // Of several lanes that have read, one alone is known.
      return access.many ? (lanes & (lanes - 1)) != 0 : (lanes >> access.lane & 1) != 0;
    }
  };

  void reset() {
    for (Of& w : warps_) w.touched = w.whole = 0, w.releases.clear();
    any_ = false;
  }
  /// Lanes access shared memory.
  void touch(uint32_t warp, uint32_t lanes) { warps_[warp].touched |= lanes; }
  /// All lanes of the warp synchronise.
  void synchronise(uint32_t warp) { warps_[warp].touched = 0; }
  /// All lanes release what they have done, at this stamp.
  void arrive_all(uint32_t warp, uint32_t stamp) { warps_[warp].whole = stamp; }
  void arrive(uint32_t warp, uint32_t lanes, uint32_t stamp, const WordLog& log) {
    Of& w = warps_[warp];
    if (!(w.touched & ~lanes)) return arrive_all(warp, stamp);
    if (w.releases.size() >= kMost) w.releases.erase(w.releases.begin(), w.releases.begin() + kMost / 2);
    if (!w.releases.empty() && w.releases.back().whole == w.whole) lanes |= w.releases.back().lanes;
    w.releases.push_back({stamp, w.whole, lanes, log.seen_by(warp, lanes)});
    any_ = true;
  }
  /// Whether there was an arrival without all lanes that had something to release.
  bool any() const { return any_; }
  /// Such an arrival of the warp at this stamp; null: none.
  const Release* find(uint32_t warp, uint32_t stamp) const {
    const std::vector<Release>& all = warps_[warp].releases;
    const auto at =
        std::lower_bound(all.begin(), all.end(), stamp, [](const Release& r, uint32_t s) { return r.stamp < s; });
    return at != all.end() && at->stamp == stamp ? &*at : nullptr;
  }

 private:
  static constexpr size_t kMost = 1024;  ///< of a warp; older ones count as complete
  struct Of {
    uint32_t touched = 0;  ///< lanes that accessed shared memory since all of them synchronised
    uint32_t whole = 0;
    std::vector<Release> releases;  ///< by stamp
  };
  Of warps_[kMaxWarps];
  bool any_ = false;
};

}  // namespace roofgen::sim
