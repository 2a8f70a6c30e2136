#include "runtime/sim/word_log.h"

namespace roofgen::sim {

void WordLog::reset(uint32_t bytes, uint32_t warps) {
  const size_t words = (bytes + 15) / 16 * 4;
  if (wrote_.size() != words || now_[0] == 0) {
    for (auto* v : {&wrote_, &read_, &wrote_at_, &read_at_}) v->assign(words, 0);
    byte_wrote_.clear();
    byte_read_.clear();
    forget();
  }
  // Records of earlier CTAs stay, as older than all synchronisations.
  for (uint32_t w = 0; w < warps; ++w) synchronise(w, ~0u);
}

void WordLog::forget() {
  ++generation_;
  for (auto* v : {&wrote_, &read_, &byte_wrote_, &byte_read_}) std::fill(v->begin(), v->end(), 0u);
  for (uint32_t w = 0; w < kMaxWarps; ++w) {
    all_[w] = ordered_[w] = group_[w] = 0;
    since_[w] = 0;
    now_[w] = 1;
    clock_[w].reset();
    refresh(w);
  }
}

void WordLog::synchronise(uint32_t warp, uint32_t mask, uint32_t dead, bool orders) {
  uint32_t& now = now_[warp];
  if (now >= kMaxCount) return forget();
  if ((mask | dead) == ~0u) {
    all_[warp] = now;
    if (orders) ordered_[warp] = now;
    since_[warp] = 0;
  } else {
    if (!clock_[warp]) clock_[warp] = std::make_unique<Clock>();
    Clock& clock = *clock_[warp];
    std::array<uint32_t, kWarpSize> seen{};
    for (uint32_t m = mask; m; m &= m - 1)
      for (uint32_t l = 0; l < kWarpSize; ++l)
        seen[l] = std::max(seen[l], clock[static_cast<uint32_t>(__builtin_ctz(m))][l]);
    for (uint32_t m = mask; m; m &= m - 1) seen[static_cast<uint32_t>(__builtin_ctz(m))] = now;
    for (uint32_t m = mask; m; m &= m - 1) clock[static_cast<uint32_t>(__builtin_ctz(m))] = seen;
    group_[warp] = now;
  }
  ++now;
  refresh(warp);
}

void WordLog::refresh(uint32_t warp) {
  const uint32_t at = warp << 27, now = now_[warp], all = all_[warp], any = std::max(all, group_[warp]);
  order_[warp] = {at | now << 7,       at | (all + 1) << 7, (now - all) << 7,
                  at | (any + 1) << 7, (now - any) << 7,    at | all << 7};
}

WordLog::LaneCounts WordLog::seen_by(uint32_t warp, uint32_t lanes) const {
  LaneCounts seen;
  seen.fill(ordered_[warp]);
  for (uint32_t m = clock_[warp] ? lanes : 0; m; m &= m - 1)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      seen[l] = std::max(seen[l], (*clock_[warp])[static_cast<uint32_t>(__builtin_ctz(m))][l]);
  return seen;
}

std::optional<WordLog::Last> WordLog::last(const std::vector<uint32_t>& words, const std::vector<uint32_t>& apart,
                                           uint32_t warp, uint32_t offset, uint32_t none) {
  const uint32_t record = words[offset / 4] == kBytes ? apart[offset] : words[offset / 4];
  if (record == 0 || record >> 27 != warp || record & none) return std::nullopt;
  return Last{record & kLane, record >> 7 & (kMaxCount + 1), (record & kMany) != 0};
}

/// Whether the access that left the record is not ordered before one of this thread.
bool WordLog::races(uint32_t record, const Thread& t, bool strong) const {
  const LaneOrder& order = order_[t.warp];
  if (record - order.low >= order.span || (strong && record & kStrong)) return false;
  if (record & kMany) return record - order.merge_low < order.merge_span;
  const uint32_t lane = record & kLane, count = record >> 7 & (kMaxCount + 1);
  return lane != t.lane && !has_seen(t, lane, count);
}

/// Calls f for each record of the bytes, and gives bytes of a word that is not accessed as a whole records of their
/// own.
template <class F>
void WordLog::each(std::vector<uint32_t>& words, std::vector<uint32_t>& apart, uint32_t offset, uint32_t bytes, F f) {
  const bool whole = offset % 4 == 0 && bytes % 4 == 0;
  if (!whole && apart.empty()) apart.resize(words.size() * 4);
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) {
    if (!whole && words[word] != kBytes) {
      std::fill_n(&apart[size_t{word} * 4], 4, words[word]);
      words[word] = kBytes;
    }
    if (words[word] != kBytes) {
      f(words[word]);
      continue;
    }
    const uint32_t begin = std::max(offset, word * 4), end = std::min(offset + bytes, word * 4 + 4);
    for (uint32_t i = begin; i < end; ++i) f(apart[i]);
  }
}

WordLog::Other WordLog::read(const Thread& t, uint32_t offset, uint32_t bytes, bool strong) {
  Other other;
  const uint32_t pc = wrote_at_[offset / 4];
  each(wrote_, byte_wrote_, offset, bytes, [&](uint32_t& record) {
    if (!other.is && races(record, t, strong)) other = {record & kLane, pc, true, true};
  });
  if (strong) return other;
  since_[t.warp] |= t.collective ? 0 : kRead;
  each(read_, byte_read_, offset, bytes, [&](uint32_t& record) {
    record = t.collective ? order_[t.warp].settled | kCollective | t.lane : merged(order_[t.warp], record, t.lane);
  });
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) read_at_[word] = t.pc;
  return other;
}

WordLog::Other WordLog::write(const Thread& t, uint32_t offset, uint32_t bytes, bool strong) {
  Other other;
  since_[t.warp] |= kWrote;
  const uint32_t wrote_at = wrote_at_[offset / 4], read_at = read_at_[offset / 4];
  each(wrote_, byte_wrote_, offset, bytes, [&](uint32_t& record) {
    if (!other.is && races(record, t, strong)) other = {record & kLane, wrote_at, true, true};
    record = order_[t.warp].tag | t.lane | (strong ? kStrong : 0);
  });
  each(read_, byte_read_, offset, bytes, [&](uint32_t& record) {
    if (!other.is && races(record, t, strong)) other = {record & kLane, read_at, true, false, (record & kMany) != 0};
  });
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) {
    wrote_at_[word] = t.pc;
    const uint32_t* b = byte_wrote_.data() + size_t{word} * 4;
    if (wrote_[word] == kBytes && b[0] == b[1] && b[1] == b[2] && b[2] == b[3]) wrote_[word] = b[0];
  }
  return other;
}

void WordLog::land(uint32_t warp, std::optional<uint32_t> lane, uint32_t offset, uint32_t bytes) {
  if (lane) since_[warp] |= kWrote;
  std::fill(&wrote_[offset / 4], wrote_.data() + (offset + bytes) / 4, lane ? order_[warp].tag | *lane : 0);
}

}  // namespace roofgen::sim
