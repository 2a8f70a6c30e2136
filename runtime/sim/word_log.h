// The thread and the instruction of the last write and the last read of each word of shared memory. They name the other
// place of a race, and find races between the lanes of one warp.
//
// Lanes of a warp are in order only where they synchronise: at bar.warp.sync and at barriers of the CTA. Shuffles,
// votes and matches do not order memory (CUDA programming guide, "Warp Shuffle Functions": "These intrinsics do not
// imply a memory barrier. They do not guarantee any memory ordering."). Each warp counts these synchronisations. An
// access of the warp races with a record of another of its lanes if the two lanes have not synchronised since; most
// often all lanes synchronise together, and one comparison with the count at that moment decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/sim/inst.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

class WordLog {
 public:
  struct Thread {
    uint32_t warp, lane, pc;
    /// The read is one of the whole warp (ldmatrix, wmma.load): every lane has taken part before it goes on, so a later
    /// write of another lane is in order.
    bool collective = false;
  };
  /// The other access of a race between lanes.
  struct Other {
    uint32_t lane = 0, pc = 0;
    bool is = false, wrote = false;
    bool many = false;  ///< several lanes read; `lane` is one of them
  };

  /// Begins a CTA with `bytes` of shared memory.
  void reset(uint32_t bytes, uint32_t warps);
  /// Lanes of a warp synchronise; `dead`: those that have exited. Not `orders`: a lane that waited for another warp may
  /// have told the others, which does not order what they did before.
  void synchronise(uint32_t warp, uint32_t mask, uint32_t dead = 0, bool orders = true);

  /// An access never crosses 16 bytes. `strong` accesses do not race with each other, and a strong read is not
  /// recorded.
  Other read(const Thread& t, uint32_t offset, uint32_t bytes, bool strong);
  Other write(const Thread& t, uint32_t offset, uint32_t bytes, bool strong);
  /// Whether lanes of the warp have accessed shared memory, or written it, since all of them synchronised.
  bool accessed(uint32_t warp) const { return since_[warp] != 0; }
  bool wrote(uint32_t warp) const { return since_[warp] & kWrote; }
  /// Whole words; false: maybe a race, and the records are as before.
  bool read_words(const Thread& t, uint32_t word, uint32_t n) {
    const LaneOrder& order = order_[t.warp];
    uint32_t raced = 0;
    for (uint32_t i = 0; i < n; ++i)
      raced |= may_race(order, wrote_[word + i], t.lane) | static_cast<uint32_t>(read_[word + i] == kBytes);
    if (raced) return false;
    since_[t.warp] |= t.collective ? 0 : kRead;
    for (uint32_t i = 0; i < n; ++i) {
      read_[word + i] = t.collective ? order.settled | kCollective | t.lane : merged(order, read_[word + i], t.lane);
      read_at_[word + i] = t.pc;
    }
    return true;
  }
  /// read_words of a word at each of the offsets, by lane; false: maybe a race, and some are recorded.
  bool read_each_word(uint32_t warp, uint32_t pc, const uint32_t* offset, uint32_t n) {
    const LaneOrder order = order_[warp];
    const bool checks = wrote(warp);
    since_[warp] |= kRead;
    uint32_t *const read = read_.data(), *const read_at = read_at_.data();
    for (uint32_t lane = 0; lane < n; ++lane) {
      const uint32_t word = offset[lane] / 4, last = read[word];
      if (last == kBytes || (checks && may_race(order, wrote_[word], lane))) return false;
      read[word] = merged(order, last, lane);
      read_at[word] = pc;
    }
    return true;
  }
  /// 16 bytes that the whole warp reads: only their first word is recorded.
  bool read_chunk(const Thread& t, uint32_t word) {
    const LaneOrder& order = order_[t.warp];
    if (wrote(t.warp)) {
      const uint32_t* w = &wrote_[word];
      const auto recent = [&](uint32_t i) {
        return static_cast<uint32_t>(w[i] - order.low < order.span) | static_cast<uint32_t>(w[i] == kBytes);
      };
      if (recent(0) | recent(1) | recent(2) | recent(3)) return read_words(t, word, 4);
    }
    if (read_[word] == kBytes) return true;
    read_[word] = order.settled | kCollective | t.lane;
    read_at_[word] = t.pc;
    return true;
  }
  /// A copy into 16 bytes by a warp that has not accessed(): a record follows when it lands.
  void issue(uint32_t pc, uint32_t word) { std::fill_n(&wrote_at_[word], 4, pc); }
  bool write_words(const Thread& t, uint32_t word, uint32_t n) {
    const LaneOrder& order = order_[t.warp];
    uint32_t raced = 0;
    for (uint32_t i = 0; i < n; ++i)
      raced |= may_race(order, wrote_[word + i], t.lane) | may_race(order, read_[word + i], t.lane);
    if (raced) return false;
    since_[t.warp] |= kWrote;
    for (uint32_t i = 0; i < n; ++i) {
      wrote_[word + i] = order.tag | t.lane;
      wrote_at_[word + i] = t.pc;
    }
    return true;
  }
  /// The same for 32 elements of `bytes` that lie one after the other; lane i has element i.
  bool read_row(const RowTable& rows, uint32_t warp, uint32_t pc, uint32_t word, uint32_t bytes) {
    since_[warp] |= kRead;
    return rows.log_read(&wrote_[word], &read_[word], &read_at_[word], bytes / 4, pc, order_[warp]);
  }
  bool write_row(const RowTable& rows, uint32_t warp, uint32_t pc, uint32_t word, uint32_t bytes) {
    since_[warp] |= kWrote;
    return rows.log_write(&wrote_[word], &read_[word], &wrote_at_[word], bytes / 4, pc, order_[warp]);
  }
  /// Bytes that a copy of the thread wrote; by no thread: an mbarrier orders it.
  void land(uint32_t warp, std::optional<uint32_t> lane, uint32_t offset, uint32_t bytes);

  /// The number of the warp's synchronisations so far, and as of the last of all its lanes. Never decreases.
  uint64_t stamp(uint32_t warp) const { return uint64_t{generation_} << 20 | now_[warp]; }
  uint64_t settled(uint32_t warp) const { return uint64_t{generation_} << 20 | all_[warp]; }
  /// Whether an access of another lane at that stamp is ordered before one of this thread.
  bool in_order(const Thread& t, uint32_t lane, uint64_t stamp) const {
    return lane == t.lane || stamp <= settled(t.warp) ||
           has_seen(t, lane, static_cast<uint32_t>(stamp & (kMaxCount + 1)));
  }
  /// By lane: the number of synchronisations that order its accesses before the next ones of any of these lanes.
  using LaneCounts = std::array<uint32_t, kWarpSize>;
  LaneCounts seen_by(uint32_t warp, uint32_t lanes) const;
  /// The last access to a byte, if it was of a lane of this warp, and not of the whole warp.
  struct Last {
    uint32_t lane, count;  ///< of the warp's synchronisations
    bool many;             ///< several lanes read; `lane` is one of them
  };
  std::optional<Last> last_write(uint32_t warp, uint32_t offset) const {
    return last(wrote_, byte_wrote_, warp, offset, 0);
  }
  std::optional<Last> last_read(uint32_t warp, uint32_t offset) const {
    return last(read_, byte_read_, warp, offset, kCollective);
  }
  /// The instruction of the last access, if it was of this warp.
  std::optional<uint32_t> place_of_write(uint32_t warp, uint32_t offset) const {
    return place(wrote_[offset / 4], wrote_at_[offset / 4], warp);
  }
  std::optional<uint32_t> place_of_read(uint32_t warp, uint32_t offset) const {
    const uint32_t word = offset / 4;
    const auto here = place(read_[word], read_at_[word], warp);
    return here ? here : place(read_[word & ~3u], read_at_[word & ~3u], warp);
  }
  uint64_t bytes() const { return (wrote_.size() * 4 + (byte_wrote_.size() + byte_read_.size())) * 4; }

 private:
  // A record: warp << 27 | count << 7 | flags | lane, and 0: none. Bytes of a word that were accessed apart have
  // records of their own.
  static constexpr uint8_t kRead = 1, kWrote = 2;
  static constexpr uint32_t kLane = 31, kMany = kLogMany, kStrong = 64, kBytes = ~0u, kMaxCount = (1u << 20) - 2;
  static constexpr uint32_t kCollective = 64;  ///< of a read, in place of kStrong

  using Clock = std::array<std::array<uint32_t, kWarpSize>, kWarpSize>;

  /// May be true without need: of a strong write, or of lanes that have synchronised in a smaller group.
  static uint32_t may_race(const LaneOrder& order, uint32_t record, uint32_t lane) {
    return static_cast<uint32_t>(record - order.low < order.span && ((record ^ lane) & (kLane | kMany))) |
           static_cast<uint32_t>(record == kBytes);
  }
  static uint32_t merged(const LaneOrder& order, uint32_t record, uint32_t lane) {
    const bool many = record - order.merge_low < order.merge_span && ((record ^ lane) & (kLane | kMany));
    return order.tag | lane | (many ? kMany : 0);
  }
  std::optional<uint32_t> place(uint32_t record, uint32_t pc, uint32_t warp) const {
    if (record == 0 || (record != kBytes && record >> 27 != warp)) return std::nullopt;
    return pc;
  }
  bool has_seen(const Thread& t, uint32_t lane, uint32_t count) const {
    return clock_[t.warp] && (*clock_[t.warp])[t.lane][lane] >= count;
  }
  bool races(uint32_t record, const Thread& t, bool strong) const;
  static std::optional<Last> last(const std::vector<uint32_t>& words, const std::vector<uint32_t>& apart, uint32_t warp,
                                  uint32_t offset, uint32_t none);
  template <class F>
  void each(std::vector<uint32_t>& words, std::vector<uint32_t>& apart, uint32_t offset, uint32_t bytes, F f);
  void forget();
  void refresh(uint32_t warp);

  std::vector<uint32_t> wrote_, read_, wrote_at_, read_at_;  ///< per word
  std::vector<uint32_t> byte_wrote_, byte_read_;             ///< per byte; empty until some are accessed apart
  uint32_t generation_ = 0;  ///< times that the records were dropped because a count ended
  LaneOrder order_[kMaxWarps];
  uint8_t since_[kMaxWarps] = {};            ///< kinds of accesses since the last synchronisation of all lanes
  uint32_t now_[kMaxWarps] = {};             ///< synchronisations
  uint32_t all_[kMaxWarps] = {};             ///< their number before the last of all lanes
  uint32_t ordered_[kMaxWarps] = {};         ///< as all_, of the last that orders
  uint32_t group_[kMaxWarps] = {};           ///< the same of the last of some lanes
  std::unique_ptr<Clock> clock_[kMaxWarps];  ///< [a][b]: what lane a has seen of b; of warps with such groups
};

}  // namespace roofgen::sim
