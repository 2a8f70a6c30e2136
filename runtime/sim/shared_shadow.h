// Records about shared memory: the bytes that were written, the bytes that are targets of pending asynchronous copies,
// and the warps that accessed each byte since their last synchronisation (a FastTrack-style race detector: warps are
// the threads, barriers the synchronisation).
//
// Time is one stamp per CTA that advances when a barrier releases or a warp arrives without
// waiting. `seen[w][v]` is the latest stamp of warp v whose accesses are ordered before the next access of
// warp w. Two accesses of different warps, one of them a write, race when the later one
// has not seen the stamp of the earlier one. Precise: no order is assumed that no barrier gives.
//
// An engine is a reader beside the warps, numbered after them: the asynchronous products of a warpgroup. It knows what
// all of its warps have seen; a warp that waits for a product has seen the engine's reads up to that product's stamp.
// Each chunk has the stamp of the last read of each engine.
//
// A core is one more warp that no barrier knows: the tensor core of tcgen05. Its next accesses happen after what the
// warp that gave it work has seen (start_core); the end of this work is signalled at an mbarrier (signal_core).
//
// In a cluster each warp also knows up to which stamps it has seen the readers of the other CTAs. An access of another
// CTA is checked against the records here; its own record is that of one more engine, which stands for all other CTAs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/sim/inst.h"

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
    uint32_t other = 0;   ///< the warp, or engine, on the other side of a race
    bool relies = false;  ///< what the warp has read strongly would order it, were it followed by a fence
    bool ok() const { return verdict == Verdict::kOk; }
  };

  /// Begins a CTA with `bytes` of unwritten shared memory and `warps` warps.
  void reset(uint32_t bytes, uint32_t warps, uint32_t engines = 0, uint32_t cores = 0);
  /// The core goes on after what a warp of this or another CTA of the cluster has seen.
  void start_core(uint32_t core, const SharedShadow& from, uint32_t warp);
  struct CoreWork {
    const SharedShadow* of;
    uint32_t core, stamp;  ///< of the last
  };
  /// What cores did for the warp arrives at the mbarrier here, with all that the warp knows.
  void signal_core(uint32_t offset, SharedShadow& from, uint32_t warp, std::span<const CoreWork> work);
  /// The engine's next reads happen after what all of these warps have seen.
  void start_engine(uint32_t engine, uint32_t first_warp, uint32_t n);
  /// The engine reads whole chunks, from the one at offsets[first] on, through the asynchronous proxy. The first that
  /// is not in order, or whose records do not decide it quickly: engine_outcome() tells why.
  size_t engine_reads(uint32_t engine, std::span<const uint32_t> offsets, size_t first);
  Outcome engine_outcome(uint32_t engine, uint32_t chunk) const;
  /// The warp has seen the engine's reads up to this stamp.
  void see(uint32_t warp, uint32_t engine, uint32_t stamp) {
    seen_[warp][engine] = std::max(seen_[warp][engine], stamp);
  }

  /// Whether accesses that race are recorded too, so that the CTA can go on after them. Otherwise an access that races
  /// changes nothing.
  void record_races(bool on) { records_races_ = on; }
  bool records_races() const { return records_races_; }
  /// `offset` counts from the start of shared memory; an access never crosses 16 bytes.
  /// `strong` accesses (volatile, atomic) do not race with each other. A strong read is remembered by
  /// note_strong_read() only: a plain write that is not ordered after it races with it.
  Outcome read(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong = false);
  /// Accesses from outside the CTA: checked for unwritten and pending bytes, not for races.
  Outcome write_from_outside(uint32_t offset, uint32_t bytes);
  enum class From : uint8_t { kRead, kWrite, kCopyIn };
  /// An access of a warp of another CTA of the cluster.
  Outcome access_from(const SharedShadow& other, uint32_t warp, uint32_t offset, uint32_t bytes, From what,
                      bool strong);
  uint32_t written(uint32_t offset, uint32_t bytes) const {
    return (uint32_t{chunks_[offset >> 4].valid} >> (offset & 15)) & ((1u << bytes) - 1);
  }
  /// Marks bytes as unwritten: they got a value that nothing wrote (padding of a struct).
  void unwrite(uint32_t offset, uint32_t holes) {
    chunks_[offset >> 4].valid &= static_cast<uint16_t>(~(holes << (offset & 15)));
  }
  Outcome write(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong = false);
  void note_strong_read(uint32_t warp, uint32_t offset, uint32_t bytes);
  /// A copy that may land at any time from now until its wait.
  Outcome async_issue(uint32_t warp, uint32_t offset, uint32_t bytes) {
    return bytes == 16 ? write_chunk(warp, offset >> 4, 0xffff) : async_issue_part(warp, offset, bytes);
  }
  /// The same for a whole chunk; false: undecided, and nothing has changed.
  bool async_issue_quickly(uint32_t warp, uint32_t chunk) {
    Chunk& c = chunks_[chunk];
    if (c.pending || c.strongly_read || !may_write_quickly(c.record, warp) || reading_engine(warp, chunk)) return false;
    c.valid = c.pending = 0xffff;
    c.strong = 0;
    c.by_copy = false;
    c.record = {warp << 27 | now_, 0, 0};
    return true;
  }
  void async_land(uint32_t warp, uint32_t offset, uint32_t bytes) {
    Chunk& c = chunks_[offset >> 4];
    if (bytes == 16 && c.record.read_stamp < kBytes) {
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
    if (c.valid == 0xffff && c.pending == 0 && read_quickly(c.record, warp)) return {};
    return read(warp, chunk * 16, 16);
  }
  /// The same for writes of a whole chunk.
  Outcome write_chunk(uint32_t warp, uint32_t chunk, uint16_t pending) {
    Chunk& c = chunks_[chunk];
    if (c.pending == 0 && !c.strongly_read && may_write_quickly(c.record, warp) && !reading_engine(warp, chunk)) {
      c.valid = 0xffff;
      c.pending = pending;
      c.strong = 0;
      c.by_copy = false;
      c.record = {warp << 27 | now_, 0, 0};
      return {};
    }
    const Outcome o = write(warp, chunk * 16, 16);
    c.pending |= pending;
    return o;
  }
  /// The same for one word of 4 bytes, or two of one chunk.
  Outcome read_words(uint32_t warp, uint32_t word, uint32_t n) {
    Chunk& c = chunks_[word >> 2];
    split_quickly(c, word);
    const uint32_t bytes = ((1u << 4 * n) - 1) << 4 * (word & 3);
    if (c.record.read_stamp == kWords && (c.valid & bytes) == bytes && !(c.pending & bytes) &&
        read_quickly(words_[word], warp) && (n == 1 || read_quickly(words_[word + 1], warp)))
      return {};
    return read(warp, word * 4, n * 4);
  }
  /// read_words of a word at each of the offsets, until one is not in order: false.
  bool read_each_word(uint32_t warp, const uint32_t* offset, uint32_t n);
  Outcome write_words(uint32_t warp, uint32_t word, uint32_t n) {
    Chunk& c = chunks_[word >> 2];
    split_quickly(c, word);
    const uint32_t bytes = ((1u << 4 * n) - 1) << 4 * (word & 3);
    if (c.record.read_stamp == kWords && !(c.pending & bytes) && !c.strongly_read &&
        may_write_quickly(words_[word], warp) && (n == 1 || may_write_quickly(words_[word + 1], warp)) &&
        !reading_engine(warp, word >> 2)) {
      c.valid |= static_cast<uint16_t>(bytes);
      c.strong &= static_cast<uint16_t>(~bytes);
      c.by_copy = false;
      for (uint32_t i = 0; i < n; ++i) words_[word + i] = {warp << 27 | now_, 0, 0};
      return {};
    }
    return write(warp, word * 4, n * 4);
  }

  /// A warp arrives at barrier `id` (16: the cluster's): warps that wait there will have seen its accesses and all that
  /// it has seen.
  void arrive(uint32_t id, uint32_t warp, bool waits);
  /// A relaxed arrival: the accesses that a fence of the warp at the stamp `fenced` came after.
  void arrive_fenced(uint32_t id, uint32_t warp, uint32_t fenced);
  /// The barrier releases: `waiters` (mask of warps) have now seen all that arrived.
  void release(uint32_t id, uint32_t waiters);
  /// The same for an mbarrier at `offset`: a warp arrives; the phase completes; a warp has observed the completion.
  /// Several signals of one instruction need one advance().
  void signal(uint32_t offset, uint32_t warp, bool advances = true);
  void complete(uint32_t offset);
  void observe(uint32_t offset, uint32_t warp);
  /// A strong read that does not acquire: the warp knows the accesses, but an acquiring fence has to follow.
  void rely(uint32_t offset, uint32_t warp);
  void acquire_relied(uint32_t warp);
  /// A fence: a later signal_fenced offers the accesses that the warp made or has seen before the fence.
  void fence(uint32_t warp);
  /// fence.proxy.async: what the warp has done and seen is visible to bulk copies.
  /// `space`: the memory whose accesses it orders; kGeneric: all.
  void proxy_fence(uint32_t warp, Space space);
  /// The last writer of a chunk, if no such fence covers its write; none of one that a bulk copy has filled.
  std::optional<uint32_t> writer_without_proxy_fence(uint32_t offset) const {
    const Chunk& c = chunks_[offset >> 4];
    if (c.by_copy ||
        (c.record.read_stamp < kBytes && (c.record.writer & kStampMask) <= proxied_[c.record.writer >> 27]))
      return std::nullopt;
    return unfenced_writer(offset);
  }
  // Of device memory.
  bool proxied(uint32_t warp, uint32_t stamp) const { return stamp <= device_proxied_[warp]; }
  bool any_proxy_fence() const {
    return std::any_of(device_proxied_, device_proxied_ + warps_, [](uint32_t stamp) { return stamp > 0; });
  }
  /// A bulk copy has filled a chunk.
  void set_by_copy(uint32_t offset) { chunks_[offset >> 4].by_copy = true; }
  /// Begins a new stamp. At the last stamp nothing changes, and races may be missed until the next barrier reports it.
  void advance() { now_ += now_ < kMaxStamp; }
  bool has_fenced(uint32_t warp) const { return fenced_[warp][warp] > 0; }
  void signal_fenced(uint32_t offset, uint32_t warp);
  bool completed(uint32_t offset) const { return !phases_.empty() && phases_.count(offset) > 0; }
  bool stamps_exhausted() const { return now_ >= kMaxStamp; }

  /// This CTA has a rank in a cluster; after reset.
  void join_cluster(uint32_t rank, uint32_t ranks);
  /// The other CTAs as one reader and writer; warp 0 where there is no number left for them.
  uint32_t outside() const { return width_ ? readers_ - 1 : 0; }
  /// A warp of another CTA arrives at the mbarrier here; `fenced`: it offers what it did before its last fence.
  void signal_from(uint32_t offset, SharedShadow& other, uint32_t warp, bool fenced = false);
  /// A copy that another CTA issued has landed, and the mbarrier counts its bytes.
  void signal_outside(uint32_t offset);
  /// Both have arrived at the cluster's barrier: each offers its warps what those of the other offer.
  void meet(SharedShadow& other);

  /// Up to which stamp a warp here has seen a warp of `owner`, this CTA or another one of the cluster.
  uint32_t seen_of(const SharedShadow& owner, uint32_t warp, uint32_t other) const {
    if (&owner == this) return seen_[warp][other];
    return width_ && owner.width_ ? others_[size_t{warp} * width_ + owner.rank_ * kMaxWarps + other] : kMaxStamp;
  }
  /// The stamp of the last write of a byte, if it was the warp's, and that of the warp's read since; else 0.
  uint32_t wrote_at(uint32_t warp, uint32_t offset) const {
    const Record& r = record_of(offset);
    return r.writer >> 27 == warp ? r.writer & kStampMask : 0;
  }
  uint32_t read_at(uint32_t warp, uint32_t offset) const {
    const Record& r = record_of(offset);
    const bool many = r.read_stamp == kManyStamps;
    if (!((many ? many_[r.readers].readers : r.readers) >> warp & 1)) return 0;
    return many ? many_[r.readers].stamp[warp] : r.read_stamp;
  }

  // For the order between CTAs (grid_order.h).
  /// Up to which stamp `warp` has seen each warp's accesses; all of its own.
  void row_of(uint32_t warp, uint32_t* stamps) const;
  bool has_seen(uint32_t warp, uint32_t other, uint32_t stamp) const { return seen_[warp][other] >= stamp; }
  /// Up to which stamp the warp knows another one here, also by relaxed waits.
  uint32_t known_of(uint32_t warp, uint32_t other) const { return std::max(seen_[warp][other], relied_[warp][other]); }
  /// `warp` has now seen the accesses up to these stamps.
  void learn(uint32_t warp, const uint32_t* stamps);

  // For device memory, which follows the same rules (device_shadow.h).
  static constexpr uint32_t kStampMask = (1u << 27) - 1;
  uint32_t now() const { return now_; }
  /// Every warp has seen all accesses up to this stamp.
  uint32_t settled() const { return settled_; }
  /// Adds records for `bytes` (whole chunks) after shared memory, written but by no warp of this CTA. Their first
  /// offset.
  uint32_t add(uint32_t bytes);
  uint32_t size() const { return static_cast<uint32_t>(chunks_.size() * 16); }
  /// Removes the records from this offset on.
  void drop_from(uint32_t offset);
  uint64_t bytes() const {
    return chunks_.capacity() * sizeof(Chunk) + words_.capacity() * sizeof(Record) + parts_.capacity() * sizeof(Parts) +
           many_.capacity() * sizeof(ManyStamps) + phases_.size() * sizeof(Phases);
  }
  /// The chunk at `offset`, new, was touched by one warp (warp << 27 | stamp); masks of its bytes.
  void remember(uint32_t offset, uint32_t touched, uint32_t read, uint32_t wrote, uint32_t strong);

 private:
  static constexpr uint32_t kMaxStamp = kStampMask - 1;
  // Marks in place of a read_stamp, above all stamps.
  static constexpr uint32_t kWords = ~0u;       ///< of a chunk: its words have records of their own, in words_
  static constexpr uint32_t kBytes = ~1u;       ///< its bytes have, in parts_
  static constexpr uint32_t kManyStamps = ~2u;  ///< readers have different stamps

  /// Last write (warp << 27 | stamp) and the reads since. `readers` is a warp mask, all at
  /// read_stamp; or an index into many_ (kManyStamps). Of a chunk with kBytes `writer` is the index in parts_.
  struct Record {
    uint32_t writer = 0, readers = 0, read_stamp = 0;
  };
  struct Chunk {
    Record record;
    uint16_t valid = 0, pending = 0;  ///< per byte
    uint16_t strong = 0;              ///< per byte: the last write was
    bool by_copy = false;             ///< a bulk copy was the last to write
    bool strongly_read = false;       ///< strong_reads_ may have words of it
  };
  struct Parts {
    Record record[16];
  };
  struct ManyStamps {
    uint32_t readers;
    uint32_t stamp[kMaxWarps];
  };

  std::span<const Record> records_of(uint32_t chunk) const;
  const Record& record_of(uint32_t offset) const {
    const std::span<const Record> records = records_of(offset >> 4);
    return records[(offset & 15) * records.size() / 16];
  }
  void raise(std::vector<uint32_t>& row, const uint32_t* by) const;
  std::optional<uint32_t> unfenced_writer(uint32_t offset) const;
  Outcome async_issue_part(uint32_t warp, uint32_t offset, uint32_t bytes);
  void async_land_part(uint32_t warp, uint32_t offset, uint32_t bytes);
  Outcome read_record(Record& r, uint32_t warp);
  Outcome write_record(Record& r, uint32_t warp, bool both_strong);
  bool relied_on(uint32_t warp, uint32_t other, uint32_t stamp) const { return relied_[warp][other] >= stamp; }
  Outcome check_strong_readers(Chunk& c, uint32_t warp, uint32_t offset, uint32_t bytes);
  Outcome check_writer(const Record& r, uint32_t warp, Verdict verdict) const;
  bool read_quickly(Record& r, uint32_t warp) {
    const uint32_t floor = floor_[warp], me = 1u << warp;
    if ((r.writer & kStampMask) > floor && r.writer >> 27 != warp) return false;
    if (r.read_stamp == now_) {
      r.readers |= me;
      return true;
    }
    if (r.read_stamp > floor && (r.readers != me || r.read_stamp >= kManyStamps)) return false;
    r.readers = me;
    r.read_stamp = now_;
    return true;
  }
  /// An engine that may still read the chunk, as far as the warp knows; 0: none.
  uint32_t reading_engine(uint32_t warp, uint32_t chunk) const {
    if (warps_ == readers_ || chunk >= shared_chunks_) return 0;
    for (uint32_t e = warps_; e < readers_; ++e)
      if (engine_read_[(e - warps_) * shared_chunks_ + chunk] > seen_[warp][e]) return e;
    return 0;
  }
  bool may_write_quickly(const Record& r, uint32_t warp) const {
    const uint32_t floor = floor_[warp];
    return ((r.writer & kStampMask) <= floor || r.writer >> 27 == warp) &&
           (r.read_stamp <= floor || (r.readers == 1u << warp && r.read_stamp < kManyStamps));
  }
  /// What split does for words, in the common case.
  void split_quickly(Chunk& c, uint32_t word) {
    if (c.record.read_stamp >= kManyStamps || words_.empty()) return;
    Record* words = &words_[word & ~3u];
    words[0] = words[1] = words[2] = words[3] = c.record;
    c.record = {0, 0, kWords};
  }
  /// Records of its own for each word of the chunk, or for each byte.
  void split(Chunk& c, bool bytes);
  Record own_copy(const Record& r);
  uint32_t new_many();
  void unite(Chunk& c);
  template <class F>
  Outcome each_record(Chunk& c, uint32_t offset, uint32_t bytes, F f);
  void refresh_floor(uint32_t warp);

  std::vector<Chunk> chunks_;
  std::vector<Record> words_;  ///< four a chunk; empty until one is split
  std::vector<Parts> parts_;
  std::vector<uint32_t> free_parts_;
  std::vector<ManyStamps> many_;
  std::vector<uint32_t> free_many_;
  bool records_races_ = false;
  uint32_t warps_ = 0, readers_ = 0;  ///< with cores; readers: warps and engines
  uint32_t cores_ = 0;
  uint32_t shared_chunks_ = 0;
  std::vector<uint32_t> engine_read_;     ///< stamps, by engine and chunk
  uint32_t rank_ = 0, width_ = 0;         ///< of a row of others_: a stamp for each reader of each CTA; 0: no cluster
  std::vector<uint32_t> others_;          ///< a row for each warp
  std::vector<uint32_t> offered_others_;  ///< a row for each barrier
  uint32_t now_ = 1;
  uint32_t seen_[kMaxWarps][kMaxWarps];
  uint32_t relied_[kMaxWarps][kMaxWarps];  ///< the same by strong reads, with or without a fence after them
  uint32_t offered_relied_[17][kMaxWarps];
  uint32_t floor_[kMaxWarps];  ///< min over the other warps of seen_[w]
  uint32_t settled_ = 0;       ///< min of floor_
  uint32_t offered_[17][kMaxWarps];
  uint32_t fenced_[kMaxWarps][kMaxWarps];  ///< what seen_ was at the last fence, and the warp's own stamp
  uint32_t proxied_[kMaxWarps], device_proxied_[kMaxWarps];
  struct Phases {
    uint32_t current[kMaxWarps] = {}, completed[kMaxWarps] = {};
    std::vector<uint32_t> others_current, others_completed;
  };
  std::unordered_map<uint32_t, Phases> phases_;  ///< by offset
  /// The stamps of the last strong reads of a word by each warp, since its last plain write. By offset / 4.
  std::unordered_map<uint32_t, std::array<uint32_t, kMaxWarps>> strong_reads_;
};

}  // namespace roofgen::sim
