// What the simulator remembers about shared memory: which bytes were written, which are the target
// of an asynchronous copy still under way, and which warps touched what since they last
// synchronised (a FastTrack-style detector: warps are the threads, barriers the synchronisation).
//
// Time is one stamp per CTA that advances when a barrier releases or a warp arrives without
// waiting. `seen[w][v]` is the latest stamp of warp v whose accesses are ordered before whatever
// warp w does now. Two accesses of different warps, one of them a write, race when the later one
// has not seen the stamp of the earlier one. Precise: no order is assumed that no barrier gives.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace roofgen::sim {

inline constexpr uint32_t kMaxWarps = 32;

class SharedShadow {
 public:
  enum class Verdict : uint8_t {
    kOk,
    kUninitialised,
    kAsyncPending,
    kReadAfterWrite,
    kWriteAfterWrite,
    kWriteAfterRead
  };
  struct Outcome {
    Verdict verdict = Verdict::kOk;
    uint32_t other = 0;  ///< the warp on the other side of a race
    bool ok() const { return verdict == Verdict::kOk; }
  };

  /// Forgets everything; `bytes` of shared memory, all unwritten, `warps` warps.
  void reset(uint32_t bytes, uint32_t warps);

  /// `offset` counts from the start of shared memory; an access never crosses 16 bytes.
  /// `strong` accesses (volatile, atomic) do not race with each other; a strong read is not remembered.
  /// `needed`: which of the bytes must have been written.
  Outcome read(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong = false, uint32_t needed = ~0u);
  /// Of who belongs to no warp here: checked for data, ordered with nothing.
  Outcome read_from_outside(uint32_t offset, uint32_t bytes) const;
  Outcome write_from_outside(uint32_t offset, uint32_t bytes);
  uint32_t written(uint32_t offset, uint32_t bytes) const { return (uint32_t{chunks_[offset >> 4].valid} >> (offset & 15)) & ((1u << bytes) - 1); }
  /// What was written there holds nothing in these bytes.
  void unwrite(uint32_t offset, uint32_t holes) { chunks_[offset >> 4].valid &= static_cast<uint16_t>(~(holes << (offset & 15))); }
  Outcome write(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong = false);
  /// A copy that may land at any time from now until its wait.
  Outcome async_issue(uint32_t warp, uint32_t offset, uint32_t bytes) {
    return bytes == 16 ? write_chunk(warp, offset >> 4, 0xffff) : async_issue_part(warp, offset, bytes);
  }
  void async_land(uint32_t warp, uint32_t offset, uint32_t bytes) {
    Chunk& c = chunks_[offset >> 4];
    if (bytes == 16 && c.record.read_stamp != kSplit) {
      c.pending = 0;
      c.record.writer = warp << 27 | now_;
    } else {
      async_land_part(warp, offset, bytes);
    }
  }
  /// A read of a whole 16-byte chunk, inlined because ldmatrix does little else. Decides the common
  /// case: all written, nothing pending, the last writer seen, the readers new or all seen.
  Outcome read_chunk(uint32_t warp, uint32_t chunk) {
    Chunk& c = chunks_[chunk];
    Record& r = c.record;
    uint32_t floor = floor_[warp], me = 1u << warp;
    if (c.valid == 0xffff && c.pending == 0 && (r.writer & kStampMask) <= floor) {
      if (r.read_stamp == now_) {
        r.readers |= me;
        return {};
      }
      if (r.read_stamp <= floor) {
        r.readers = me;
        r.read_stamp = now_;
        return {};
      }
    }
    return read(warp, chunk * 16, 16);
  }
  /// The same for writes of a whole chunk.
  Outcome write_chunk(uint32_t warp, uint32_t chunk, uint16_t pending) {
    Chunk& c = chunks_[chunk];
    Record& r = c.record;
    uint32_t floor = floor_[warp];
    if (c.pending == 0 && (r.writer & kStampMask) <= floor && r.read_stamp <= floor) {
      c.valid = 0xffff;
      c.pending = pending;
      c.strong = 0;
      r = {warp << 27 | now_, 0, 0};
      return {};
    }
    Outcome o = write(warp, chunk * 16, 16);
    if (o.ok()) c.pending = pending;
    return o;
  }

  /// A warp reaches barrier `id` (16: the cluster's); what it has seen and done is offered to those who wait there.
  void arrive(uint32_t id, uint32_t warp, bool waits);
  /// The barrier releases: `waiters` (mask of warps) have now seen all that arrived.
  void release(uint32_t id, uint32_t waiters);
  /// The same for a barrier in shared memory at `offset`: a warp arrives at its phase; the phase completes; a warp has seen that.
  void signal(uint32_t offset, uint32_t warp);
  void complete(uint32_t offset);
  void observe(uint32_t offset, uint32_t warp);
  bool completed(uint32_t offset) const { return !phases_.empty() && phases_.count(offset) > 0; }
  bool stamps_exhausted() const { return now_ >= kMaxStamp; }

 private:
  static constexpr uint32_t kStampMask = (1u << 27) - 1;
  static constexpr uint32_t kMaxStamp = kStampMask - 1;
  static constexpr uint32_t kSplit = ~0u;       ///< read_stamp of a chunk whose parts have own records
  static constexpr uint32_t kManyStamps = ~1u;  ///< read_stamp when readers have different stamps

  /// Last write (warp << 27 | stamp) and the reads since. `readers` is a warp mask, all at
  /// read_stamp; or an index into many_ (kManyStamps); a split chunk has its index in parts_ in
  /// `writer` and log2 of the part size in `readers`.
  struct Record {
    uint32_t writer = 0, readers = 0, read_stamp = 0;
  };
  struct Chunk {
    Record record;
    uint16_t valid = 0, pending = 0;  ///< per byte
    uint16_t strong = 0;              ///< per byte: the last write was
  };
  struct Parts {
    Record record[16];
  };
  struct ManyStamps {
    uint32_t readers;
    uint32_t stamp[kMaxWarps];
  };

  Outcome async_issue_part(uint32_t warp, uint32_t offset, uint32_t bytes);
  void async_land_part(uint32_t warp, uint32_t offset, uint32_t bytes);
  Outcome read_record(Record& r, uint32_t warp);
  Outcome write_record(Record& r, uint32_t warp, bool both_strong);
  Outcome check_writer(const Record& r, uint32_t warp, Verdict verdict) const;
  void split(Chunk& c, uint32_t log2_part);
  template <class F>
  Outcome each_record(Chunk& c, uint32_t offset, uint32_t bytes, F f);
  void refresh_floor(uint32_t warp);

  std::vector<Chunk> chunks_;
  std::vector<Parts> parts_;
  std::vector<uint32_t> free_parts_;
  std::vector<ManyStamps> many_;
  uint32_t warps_ = 0;
  uint32_t now_ = 1;
  uint32_t seen_[kMaxWarps][kMaxWarps];
  uint32_t floor_[kMaxWarps];  ///< min over the others of seen_[w]
  uint32_t offered_[17][kMaxWarps];
  struct Phases {
    uint32_t current[kMaxWarps] = {}, completed[kMaxWarps] = {};
  };
  std::unordered_map<uint32_t, Phases> phases_;  ///< by offset
};

}  // namespace roofgen::sim
