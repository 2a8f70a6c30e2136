#include "runtime/sim/shared_shadow.h"

#include <algorithm>
#include <cstring>

namespace roofgen::sim {

void SharedShadow::reset(uint32_t bytes, uint32_t warps, uint32_t engines, uint32_t cores) {
  warps += cores;
  cores_ = cores;
  chunks_.assign((bytes + 15) / 16, Chunk{});
  if (!words_.empty()) words_.resize(chunks_.size() * 4);
  parts_.clear();
  free_parts_.clear();
  many_.clear();
  phases_.clear();
  strong_reads_.clear();
  free_many_.clear();
  warps_ = warps;
  readers_ = warps + engines;
  shared_chunks_ = static_cast<uint32_t>(chunks_.size());
  engine_read_.assign(size_t{engines} * shared_chunks_, 0);
  rank_ = width_ = 0;
  records_races_ = false;
  now_ = 1;
  std::memset(seen_, 0, sizeof seen_);
  std::memset(relied_, 0, sizeof relied_);
  std::memset(offered_relied_, 0, sizeof offered_relied_);
  std::memset(offered_, 0, sizeof offered_);
  std::memset(fenced_, 0, sizeof fenced_);
  std::memset(floor_, 0, sizeof floor_);
  std::memset(proxied_, 0, sizeof proxied_);
  std::memset(device_proxied_, 0, sizeof device_proxied_);
  if (warps == 1) floor_[0] = kMaxStamp;
  settled_ = 0;
}

void SharedShadow::refresh_floor(uint32_t warp) {
  uint32_t floor = kMaxStamp;  // below the marks
  for (uint32_t v = 0; v < warps_; ++v)
    if (v != warp) floor = std::min(floor, seen_[warp][v]);
  floor_[warp] = width_ ? std::min(floor, seen_[warp][outside()]) : floor;
}

void SharedShadow::start_engine(uint32_t engine, uint32_t first_warp, uint32_t n) {
  uint32_t* seen = seen_[engine];
  for (uint32_t v = 0; v < readers_; ++v) {
    seen[v] = kMaxStamp;
    for (uint32_t w = first_warp; w < first_warp + n; ++w) seen[v] = std::min(seen[v], v == w ? now_ : seen_[w][v]);
  }
  floor_[engine] = *std::min_element(seen, seen + warps_);
}

size_t SharedShadow::engine_reads(uint32_t engine, std::span<const uint32_t> offsets, size_t first) {
  // The last write of each warp that the engine has seen through the asynchronous proxy, as a record has it; and the
  // last of its bulk copies.
  uint32_t last[2][kMaxWarps];
  for (uint32_t v = 0; v < kMaxWarps; ++v) {
    last[0][v] = v << 27 | std::min(seen_[engine][v], proxied_[v]);
    last[1][v] = v << 27 | seen_[engine][v];
  }
  uint32_t* const read = &engine_read_[size_t{engine - warps_} * shared_chunks_];
  const uint32_t now = now_;
  const Chunk* const chunks = chunks_.data();
  const auto in_doubt = [&](uint32_t at) -> uint32_t {
    const Chunk& c = chunks[at];
    const uint32_t writer = c.record.writer;
    return static_cast<uint32_t>(c.valid ^ 0xffff) | c.pending | static_cast<uint32_t>(c.record.read_stamp >= kBytes) |
           static_cast<uint32_t>(writer > last[c.by_copy][writer >> 27]);
  };
  // One branch for the pieces of a block: it is never taken where all is in order.
  constexpr size_t kBlock = 8;
  size_t i = first;
  for (; i + kBlock <= offsets.size(); i += kBlock) {
    uint32_t any = 0;
    for (size_t k = i; k < i + kBlock; ++k) {
      const uint32_t at = offsets[k] >> 4;
      read[at] = now;
      any |= in_doubt(at);
    }
    if (any) break;
  }
  for (; i < offsets.size(); ++i) {
    const uint32_t at = offsets[i] >> 4;
    read[at] = now;
    if (in_doubt(at)) return i;
  }
  return offsets.size();
}

SharedShadow::Outcome SharedShadow::engine_outcome(uint32_t engine, uint32_t chunk) const {
  const Chunk& c = chunks_[chunk];
  if (c.pending) return {Verdict::kAsyncPending, 0};
  if (c.valid != 0xffff) return {Verdict::kUninitialised, 0};
  for (const Record& r : records_of(chunk))
    if (const Outcome o = check_writer(r, engine, Verdict::kReadAfterWrite); !o.ok()) return o;
  return {};
}

void SharedShadow::start_core(uint32_t core, const SharedShadow& from, uint32_t warp) {
  for (uint32_t v = 0; v < readers_; ++v) seen_[core][v] = from.seen_of(*this, warp, v);
  if (&from == this) seen_[core][warp] = now_;
  refresh_floor(core);
}

void SharedShadow::signal_core(uint32_t offset, SharedShadow& from, uint32_t warp, std::span<const CoreWork> work) {
  const bool here = &from == this;
  if (!width_ || !from.width_) {
    Phases& p = phases_[offset];
    for (const CoreWork& w : work)
      if (w.of == this) p.current[w.core] = std::max(p.current[w.core], w.stamp);
    return here ? signal(offset, warp) : signal_outside(offset);
  }
  std::vector<uint32_t> known(&from.others_[size_t{warp} * width_], &from.others_[size_t{warp} * width_] + width_);
  from.row_of(warp, &known[from.rank_ * kMaxWarps]);
  for (const CoreWork& w : work) {
    uint32_t& stamp = known[w.of->rank_ * kMaxWarps + w.core];
    stamp = std::max(stamp, w.stamp);
  }
  Phases& p = phases_[offset];
  for (uint32_t v = 0; v + (here ? 0 : 1) < readers_; ++v)
    p.current[v] = std::max(p.current[v], known[rank_ * kMaxWarps + v]);
  raise(p.others_current, known.data());
  from.advance();
  if (!here) signal_outside(offset);
}

// ---- clusters ------------------------------------------------------------------------------------------

void SharedShadow::join_cluster(uint32_t rank, uint32_t ranks) {
  if (readers_ == kMaxWarps) return;
  ++readers_;
  engine_read_.resize(engine_read_.size() + shared_chunks_, 0);
  rank_ = rank;
  width_ = ranks * kMaxWarps;
  others_.assign(size_t{warps_} * width_, 0);
  offered_others_.assign(size_t{17} * width_, 0);
  std::fill_n(floor_, warps_, 0u);
}

void SharedShadow::raise(std::vector<uint32_t>& row, const uint32_t* by) const {
  row.resize(width_);
  for (uint32_t i = 0; i < width_; ++i) row[i] = std::max(row[i], by[i]);
}

void SharedShadow::signal_from(uint32_t offset, SharedShadow& other, uint32_t warp, bool fenced) {
  if (!width_ || !other.width_) return;
  Phases& p = phases_[offset];
  std::vector<uint32_t> known(&other.others_[size_t{warp} * width_], &other.others_[size_t{warp} * width_] + width_);
  if (fenced)
    std::copy_n(other.fenced_[warp], kMaxWarps, &known[other.rank_ * kMaxWarps]);
  else
    other.row_of(warp, &known[other.rank_ * kMaxWarps]);
  for (uint32_t v = 0; v + 1 < readers_; ++v) p.current[v] = std::max(p.current[v], known[rank_ * kMaxWarps + v]);
  raise(p.others_current, known.data());
  other.advance();
  signal_outside(offset);
}

void SharedShadow::signal_outside(uint32_t offset) {
  if (!width_) return signal(offset, 0);
  phases_[offset].current[outside()] = now_;
  advance();
}

void SharedShadow::meet(SharedShadow& other) {
  if (!width_ || !other.width_) return;
  constexpr uint32_t kBarrier = 16;
  uint32_t* here = &offered_others_[size_t{kBarrier} * width_];
  uint32_t* there = &other.offered_others_[size_t{kBarrier} * width_];
  const auto take = [](SharedShadow& to, uint32_t* row, const SharedShadow& from, const uint32_t* from_row) {
    const bool any =
        std::any_of(from.offered_[kBarrier], from.offered_[kBarrier] + from.warps_, [](uint32_t s) { return s; });
    for (uint32_t v = 0; v < kMaxWarps; ++v) {
      uint32_t& of_other = row[from.rank_ * kMaxWarps + v];
      of_other = std::max(of_other, from.offered_[kBarrier][v]);
      uint32_t& own = to.offered_[kBarrier][v];
      own = std::max(own, from_row[to.rank_ * kMaxWarps + v]);
    }
    if (any) to.offered_[kBarrier][to.outside()] = to.now_;
  };
  take(*this, here, other, there);
  take(other, there, *this, here);
}

SharedShadow::Outcome SharedShadow::access_from(const SharedShadow& other, uint32_t warp, uint32_t offset,
                                                uint32_t bytes, From what, bool strong) {
  Chunk& c = chunks_[offset >> 4];
  const auto mask = static_cast<uint16_t>(((1u << bytes) - 1) << (offset & 15));
  const bool writes = what != From::kRead;
  Outcome all;
  if (c.pending & mask)
    all.verdict = Verdict::kAsyncPending;
  else if (!writes && mask & ~c.valid)
    all.verdict = Verdict::kUninitialised;
  if (width_ && other.width_ && !strong) {
    const uint32_t* seen = &other.others_[size_t{warp} * width_ + rank_ * kMaxWarps];
    const auto note = [&](Verdict verdict, uint32_t reader) {
      if (all.ok()) all = {verdict, reader};
    };
    each_record(c, offset, bytes, [&](Record& r) {
      const uint32_t writer = r.writer >> 27;
      if (writer != outside() && (r.writer & kStampMask) > seen[writer])
        note(writes ? Verdict::kWriteAfterWrite : Verdict::kReadAfterWrite, writer);
      for (uint32_t v = 0; writes && v < warps_; ++v) {
        const bool many = r.read_stamp == kManyStamps;
        const uint32_t readers = many ? many_[r.readers].readers : r.readers;
        if (readers >> v & 1 && (many ? many_[r.readers].stamp[v] : r.read_stamp) > seen[v])
          note(Verdict::kWriteAfterRead, v);
      }
      if (!writes) return Outcome{};
      if (r.read_stamp == kManyStamps) free_many_.push_back(r.readers);
      r = {outside() << 27 | now_, 0, 0};
      return Outcome{};
    });
    for (uint32_t e = warps_; writes && e < outside(); ++e)
      if (engine_read_[(e - warps_) * shared_chunks_ + (offset >> 4)] > seen[e]) note(Verdict::kWriteAfterRead, e);
    if (!writes) engine_read_[(outside() - warps_) * shared_chunks_ + (offset >> 4)] = now_;
  }
  if (!writes) return all;
  c.valid |= mask;
  c.by_copy = false;
  if (strong) c.strong |= mask;
  if (what == From::kCopyIn) c.pending |= mask;
  return all;
}

// ---- the order of warps --------------------------------------------------------------------------------

void SharedShadow::arrive(uint32_t id, uint32_t warp, bool waits) {
  for (uint32_t i = 0; i < width_; ++i)
    offered_others_[size_t{id} * width_ + i] =
        std::max(offered_others_[size_t{id} * width_ + i], others_[size_t{warp} * width_ + i]);
  for (uint32_t v = 0; v < readers_; ++v) offered_[id][v] = std::max(offered_[id][v], seen_[warp][v]);
  for (uint32_t v = 0; v < readers_; ++v) offered_relied_[id][v] = std::max(offered_relied_[id][v], relied_[warp][v]);
  offered_[id][warp] = std::max(offered_[id][warp], now_);
  if (!waits) advance();  // the arrival does not cover the next accesses of the warp
}

void SharedShadow::arrive_fenced(uint32_t id, uint32_t warp, uint32_t fenced) {
  for (uint32_t i = 0; i < width_; ++i)
    offered_others_[size_t{id} * width_ + i] =
        std::max(offered_others_[size_t{id} * width_ + i], others_[size_t{warp} * width_ + i]);
  for (uint32_t v = 0; v < readers_; ++v)
    offered_[id][v] = std::max(offered_[id][v], v == warp ? fenced : fenced_[warp][v]);
}

void SharedShadow::release(uint32_t id, uint32_t waiters) {
  for (uint32_t w = 0; w < warps_; ++w) {
    if (!(waiters >> w & 1)) continue;
    for (uint32_t v = 0; v < readers_; ++v) {
      seen_[w][v] = std::max(seen_[w][v], offered_[id][v]);
      relied_[w][v] = std::max(relied_[w][v], offered_relied_[id][v]);
    }
    for (uint32_t i = 0; i < width_; ++i)
      others_[size_t{w} * width_ + i] =
          std::max(others_[size_t{w} * width_ + i], offered_others_[size_t{id} * width_ + i]);
    refresh_floor(w);
  }
  settled_ = *std::min_element(floor_, floor_ + warps_ - cores_);
  std::memset(offered_[id], 0, sizeof offered_[id]);
  std::memset(offered_relied_[id], 0, sizeof offered_relied_[id]);
  if (width_) std::fill_n(&offered_others_[size_t{id} * width_], width_, 0u);
  advance();
}

void SharedShadow::signal(uint32_t offset, uint32_t warp, bool advances) {
  Phases& p = phases_[offset];
  for (uint32_t v = 0; v < readers_; ++v) p.current[v] = std::max(p.current[v], seen_[warp][v]);
  p.current[warp] = std::max(p.current[warp], now_);
  if (width_) raise(p.others_current, &others_[size_t{warp} * width_]);
  if (advances) advance();
}

void SharedShadow::fence(uint32_t warp) {
  std::memcpy(fenced_[warp], seen_[warp], sizeof fenced_[warp]);
  fenced_[warp][warp] = now_;
  advance();
}

void SharedShadow::proxy_fence(uint32_t warp, Space space) {
  for (uint32_t v = 0; v < readers_; ++v) {
    const uint32_t known = v == warp ? now_ : seen_[warp][v];
    if (space != Space::kGlobal) proxied_[v] = std::max(proxied_[v], known);
    if (space != Space::kShared) device_proxied_[v] = std::max(device_proxied_[v], known);
  }
  advance();
}

std::span<const SharedShadow::Record> SharedShadow::records_of(uint32_t chunk) const {
  const Chunk& c = chunks_[chunk];
  if (c.record.read_stamp == kWords) return {&words_[size_t{chunk} * 4], 4};
  if (c.record.read_stamp == kBytes) return {parts_[c.record.writer].record, 16};
  return {&c.record, 1};
}

std::optional<uint32_t> SharedShadow::unfenced_writer(uint32_t offset) const {
  for (const Record& r : records_of(offset >> 4))
    if ((r.writer & kStampMask) > proxied_[r.writer >> 27]) return r.writer >> 27;
  return std::nullopt;
}

void SharedShadow::signal_fenced(uint32_t offset, uint32_t warp) {
  Phases& p = phases_[offset];
  for (uint32_t v = 0; v < readers_; ++v) p.current[v] = std::max(p.current[v], fenced_[warp][v]);
  if (width_) raise(p.others_current, &others_[size_t{warp} * width_]);
}

void SharedShadow::complete(uint32_t offset) {
  Phases& p = phases_[offset];
  for (uint32_t v = 0; v < readers_; ++v) {
    p.completed[v] = std::max(p.completed[v], p.current[v]);
    p.current[v] = 0;
  }
  if (p.others_current.empty()) return;
  raise(p.others_completed, p.others_current.data());
  p.others_current.clear();
}

void SharedShadow::observe(uint32_t offset, uint32_t warp) {
  const Phases& p = phases_[offset];
  for (uint32_t v = 0; v < readers_; ++v)
    if (v != warp) seen_[warp][v] = std::max(seen_[warp][v], p.completed[v]);
  for (uint32_t i = 0; i < p.others_completed.size(); ++i)
    others_[size_t{warp} * width_ + i] = std::max(others_[size_t{warp} * width_ + i], p.others_completed[i]);
  refresh_floor(warp);
}

void SharedShadow::rely(uint32_t offset, uint32_t warp) {
  const Phases& p = phases_[offset];
  for (uint32_t v = 0; v < readers_; ++v)
    if (v != warp) relied_[warp][v] = std::max(relied_[warp][v], p.completed[v]);
}

void SharedShadow::acquire_relied(uint32_t warp) {
  for (uint32_t v = 0; v < readers_; ++v) seen_[warp][v] = std::max(seen_[warp][v], relied_[warp][v]);
  refresh_floor(warp);
}

void SharedShadow::row_of(uint32_t warp, uint32_t* stamps) const {
  std::memcpy(stamps, seen_[warp], sizeof seen_[warp]);
  stamps[warp] = now_;
}

void SharedShadow::learn(uint32_t warp, const uint32_t* stamps) {
  for (uint32_t v = 0; v < readers_; ++v)
    if (v != warp) seen_[warp][v] = std::max(seen_[warp][v], stamps[v]);
  refresh_floor(warp);
}

uint32_t SharedShadow::add(uint32_t bytes) {
  const uint32_t offset = size();
  Chunk written;
  written.valid = 0xffff;
  chunks_.resize(chunks_.size() + bytes / 16, written);
  if (!words_.empty()) words_.resize(chunks_.size() * 4);
  return offset;
}

void SharedShadow::drop_from(uint32_t offset) {
  for (size_t i = offset / 16; i < chunks_.size(); ++i)
    if (chunks_[i].record.read_stamp == kBytes) free_parts_.push_back(chunks_[i].record.writer);
  std::erase_if(strong_reads_, [&](const auto& word) { return word.first >= offset / 4; });
  chunks_.resize(offset / 16);
  if (!words_.empty()) words_.resize(chunks_.size() * 4);
}

void SharedShadow::remember(uint32_t offset, uint32_t touched, uint32_t read, uint32_t wrote, uint32_t strong) {
  Chunk& c = chunks_[offset >> 4];
  c.strong = static_cast<uint16_t>(strong);
  const auto record = [&](uint32_t byte) {
    const bool was_read = read >> byte & 1;
    return Record{wrote >> byte & 1 ? touched : 0, was_read ? 1u << (touched >> 27) : 0,
                  was_read ? touched & kStampMask : 0};
  };
  // Masks whose groups of four bits are all equal are 15 times those groups' lowest bits.
  const auto whole_words = [](uint32_t mask) { return mask == (mask & 0x1111) * 15; };
  const auto whole = [](uint32_t mask) { return mask == 0 || mask == 0xffff; };
  if (whole(read) && whole(wrote)) {
    c.record = record(0);
    return;
  }
  const bool bytes = !whole_words(read) || !whole_words(wrote);
  split(c, bytes);
  if (bytes)
    for (uint32_t i = 0; i < 16; ++i) parts_[c.record.writer].record[i] = record(i);
  else
    for (uint32_t i = 0; i < 4; ++i) words_[(offset >> 2) + i] = record(4 * i);
}

SharedShadow::Outcome SharedShadow::check_writer(const Record& r, uint32_t warp, Verdict verdict) const {
  uint32_t writer = r.writer >> 27, stamp = r.writer & kStampMask;
  if (writer != warp && stamp > seen_[warp][writer]) return {verdict, writer, relied_on(warp, writer, stamp)};
  return {};
}

SharedShadow::Outcome SharedShadow::read_record(Record& r, uint32_t warp) {
  const Outcome o = check_writer(r, warp, Verdict::kReadAfterWrite);
  if (!o.ok() && !records_races_) return o;
  uint32_t me = 1u << warp;
  if (r.read_stamp == now_) {
    r.readers |= me;
    return o;
  }
  if (r.read_stamp != kManyStamps) {
    // Readers this warp has already seen need no memory: who races with them races with this read
    // too, or is ordered after both.
    uint32_t unseen = 0;
    if (r.read_stamp > floor_[warp])
      for (uint32_t v = 0; v < warps_; ++v)
        if (v != warp && (r.readers >> v & 1) && r.read_stamp > seen_[warp][v]) unseen |= 1u << v;
    if (!unseen) {
      r.readers = me;
      r.read_stamp = now_;
      return o;
    }
    const uint32_t index = new_many();
    many_[index].readers = unseen;
    std::fill_n(many_[index].stamp, warps_, r.read_stamp);
    r.readers = index;
    r.read_stamp = kManyStamps;
  }
  ManyStamps& m = many_[r.readers];
  m.readers |= me;
  m.stamp[warp] = now_;
  return o;
}

SharedShadow::Outcome SharedShadow::write_record(Record& r, uint32_t warp, bool both_strong) {
  Outcome o = both_strong ? Outcome{} : check_writer(r, warp, Verdict::kWriteAfterWrite);
  if (r.read_stamp == kManyStamps) {
    const ManyStamps& m = many_[r.readers];
    for (uint32_t v = 0; v < warps_ && o.ok(); ++v)
      if (v != warp && (m.readers >> v & 1) && m.stamp[v] > seen_[warp][v])
        o = {Verdict::kWriteAfterRead, v, relied_on(warp, v, m.stamp[v])};
  } else if (r.read_stamp > floor_[warp]) {
    for (uint32_t v = 0; v < warps_ && o.ok(); ++v)
      if (v != warp && (r.readers >> v & 1) && r.read_stamp > seen_[warp][v])
        o = {Verdict::kWriteAfterRead, v, relied_on(warp, v, r.read_stamp)};
  }
  if (!o.ok() && !records_races_) return o;
  if (r.read_stamp == kManyStamps) free_many_.push_back(r.readers);
  r.writer = warp << 27 | now_;
  r.readers = r.read_stamp = 0;
  return o;
}

uint32_t SharedShadow::new_many() {
  if (free_many_.empty()) {
    many_.emplace_back();
    return static_cast<uint32_t>(many_.size() - 1);
  }
  const uint32_t index = free_many_.back();
  free_many_.pop_back();
  return index;
}

/// Two records must not share one entry of many_.
SharedShadow::Record SharedShadow::own_copy(const Record& r) {
  if (r.read_stamp != kManyStamps) return r;
  const uint32_t index = new_many();
  many_[index] = many_[r.readers];
  return {r.writer, index, kManyStamps};
}

void SharedShadow::split(Chunk& c, bool bytes) {
  if (c.record.read_stamp == kBytes || (c.record.read_stamp == kWords && !bytes)) return;
  if (words_.empty()) words_.resize(chunks_.size() * 4);
  Record* words = &words_[static_cast<size_t>(&c - chunks_.data()) * 4];
  if (c.record.read_stamp != kWords) {
    words[0] = c.record;
    for (uint32_t i = 1; i < 4; ++i) words[i] = own_copy(c.record);
    c.record = {0, 0, kWords};
  }
  if (!bytes) return;
  uint32_t index;
  if (free_parts_.empty()) {
    index = static_cast<uint32_t>(parts_.size());
    parts_.emplace_back();
  } else {
    index = free_parts_.back();
    free_parts_.pop_back();
  }
  for (uint32_t i = 0; i < 16; ++i) parts_[index].record[i] = i % 4 ? own_copy(words[i / 4]) : words[i / 4];
  c.record = {index, 0, kBytes};
}

/// One record again for words that have the same.
void SharedShadow::unite(Chunk& c) {
  if (c.record.read_stamp != kWords) return;
  const Record* words = &words_[static_cast<size_t>(&c - chunks_.data()) * 4];
  const auto same = [&](const Record& r) {
    return r.writer == words->writer && r.readers == words->readers && r.read_stamp == words->read_stamp;
  };
  if (words->read_stamp < kManyStamps && std::all_of(words + 1, words + 4, same)) c.record = words[0];
}

/// Applies f to each record the bytes touch, splitting the chunk first when they are not all of it. The first outcome
/// that is not kOk.
template <class F>
SharedShadow::Outcome SharedShadow::each_record(Chunk& c, uint32_t offset, uint32_t bytes, F f) {
  if (bytes < 16) split(c, bytes % 4 != 0);
  const bool words = c.record.read_stamp == kWords;
  if (!words && c.record.read_stamp != kBytes) return f(c.record);
  Record* first = words ? &words_[offset >> 2] : &parts_[c.record.writer].record[offset & 15];
  Outcome all;
  for (Record* r = first; r != first + (words ? bytes >> 2 : bytes); ++r)
    if (const Outcome o = f(*r); !o.ok()) {
      if (all.ok()) all = o;
      if (!records_races_) break;
    }
  return all;
}

SharedShadow::Outcome SharedShadow::read(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong) {
  Chunk& c = chunks_[offset >> 4];
  auto mask = static_cast<uint16_t>(((1u << bytes) - 1) << (offset & 15));
  Outcome o;
  if (!strong) {
    o = each_record(c, offset, bytes, [&](Record& r) { return read_record(r, warp); });
    if (bytes == 16) unite(c);
  } else if ((c.strong & mask) != mask)
    o = each_record(c, offset, bytes, [&](Record& r) { return check_writer(r, warp, Verdict::kReadAfterWrite); });
  if (c.pending & mask) return {Verdict::kAsyncPending, 0};
  if (mask & ~c.valid) return {Verdict::kUninitialised, 0};
  return o;
}

bool SharedShadow::read_each_word(uint32_t warp, const uint32_t* offset, uint32_t n) {
  // What does not change from word to word is kept out of memory.
  const uint32_t floor = floor_[warp], now = now_, me = 1u << warp;
  Chunk* const chunks = chunks_.data();
  Record* words = words_.data();
  for (uint32_t i = 0; i < n; ++i) {
    const Chunk& c = chunks[offset[i] >> 4];
    const uint32_t bytes = 15u << (offset[i] & 15);
    if (c.record.read_stamp == kWords && (c.valid & ~uint32_t{c.pending} & bytes) == bytes) {
      Record& r = words[offset[i] >> 2];
      const bool more = r.read_stamp == now;
      if (((r.writer & kStampMask) <= floor || r.writer >> 27 == warp) && (more || r.read_stamp <= floor)) {
        r.readers = (more ? r.readers : 0) | me;
        r.read_stamp = now;
        continue;
      }
    }
    if (!read_words(warp, offset[i] >> 2, 1).ok()) return false;
    words = words_.data();
  }
  return true;
}

SharedShadow::Outcome SharedShadow::write(uint32_t warp, uint32_t offset, uint32_t bytes, bool strong) {
  Chunk& c = chunks_[offset >> 4];
  auto mask = static_cast<uint16_t>(((1u << bytes) - 1) << (offset & 15));
  const bool both_strong = strong && (c.strong & mask) == mask;
  if (c.strongly_read && !strong)
    if (const Outcome o = check_strong_readers(c, warp, offset, bytes); !o.ok()) {
      if (records_races_) write(warp, offset, bytes, strong);  // the records of the readers are gone
      return o;
    }
  if (const uint32_t engine = reading_engine(warp, offset >> 4)) {
    if (!records_races_) return {Verdict::kWriteAfterRead, engine};
    engine_read_[(engine - warps_) * shared_chunks_ + (offset >> 4)] = 0;  // once is enough
    write(warp, offset, bytes, strong);
    return {Verdict::kWriteAfterRead, engine};
  }
  // A strong write after a plain one of the same warp and stamp leaves the plain one: who is ordered after it is
  // ordered after the strong one too.
  bool own_plain = strong && (c.strong & mask) == 0;
  const Outcome o = each_record(c, offset, bytes, [&](Record& r) {
    own_plain &= r.writer == (warp << 27 | now_);
    return write_record(r, warp, both_strong);
  });
  if (!o.ok() && !records_races_) return o;
  c.valid |= mask;
  c.by_copy = false;
  c.strong = static_cast<uint16_t>(strong && !own_plain ? c.strong | mask : c.strong & ~mask);
  if (bytes == 16 && c.record.read_stamp >= kBytes) {  // one whole write makes the chunk uniform again
    if (c.record.read_stamp == kBytes) free_parts_.push_back(c.record.writer);
    c.record = {warp << 27 | now_, 0, 0};
  }
  if (c.pending & mask) return {Verdict::kAsyncPending, 0};
  return o;
}

void SharedShadow::note_strong_read(uint32_t warp, uint32_t offset, uint32_t bytes) {
  if (warps_ < 2) return;
  chunks_[offset >> 4].strongly_read = true;
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) strong_reads_[word][warp] = now_;
}

/// Of a plain write, which replaces the records if it is in order or races are recorded.
SharedShadow::Outcome SharedShadow::check_strong_readers(Chunk& c, uint32_t warp, uint32_t offset, uint32_t bytes) {
  Outcome o;
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) {
    const auto reads = strong_reads_.find(word);
    if (reads == strong_reads_.end()) continue;
    for (uint32_t v = 0; v < warps_ && o.ok(); ++v)
      if (v != warp && reads->second[v] > seen_[warp][v])
        o = {Verdict::kWriteAfterRead, v, relied_on(warp, v, reads->second[v])};
    if (!o.ok() && !records_races_) return o;
    strong_reads_.erase(reads);
  }
  const uint32_t first = offset / 16 * 4;
  c.strongly_read = false;
  for (uint32_t word = first; word < first + 4; ++word) c.strongly_read |= strong_reads_.count(word) > 0;
  return o;
}

SharedShadow::Outcome SharedShadow::write_from_outside(uint32_t offset, uint32_t bytes) {
  Chunk& c = chunks_[offset >> 4];
  const uint32_t mask = ((1u << bytes) - 1) << (offset & 15);
  c.valid |= static_cast<uint16_t>(mask);
  return {c.pending & mask ? Verdict::kAsyncPending : Verdict::kOk, 0};
}

SharedShadow::Outcome SharedShadow::async_issue_part(uint32_t warp, uint32_t offset, uint32_t bytes) {
  Outcome o = write(warp, offset, bytes);
  Chunk& c = chunks_[offset >> 4];
  auto mask = static_cast<uint16_t>(((1u << bytes) - 1) << (offset & 15));
  c.pending |= mask;
  return o;
}

void SharedShadow::async_land_part(uint32_t warp, uint32_t offset, uint32_t bytes) {
  Chunk& c = chunks_[offset >> 4];
  c.pending &= static_cast<uint16_t>(~(((1u << bytes) - 1) << (offset & 15)));
  // The data counts as written now, by the warp that waited: others need a barrier after this.
  uint32_t writer = warp << 27 | now_;
  each_record(c, offset, bytes, [&](Record& r) {
    r.writer = writer;
    return Outcome{};
  });
}

}  // namespace roofgen::sim
