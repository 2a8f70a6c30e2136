#include "runtime/sim/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace roofgen::sim {
namespace {

/// Calls `chunk(at)` for the whole chunks of 16 bytes of 32 contiguous elements and `element(at)` for the elements that
/// share a chunk with other data, until one returns false.
template <class Chunk, class Element>
bool each_piece(uint32_t begin, uint32_t bytes, Chunk chunk, Element element) {
  uint32_t at = begin;
  const uint32_t end = begin + bytes * kWarpSize;
  for (; at % 16; at += bytes)
    if (!element(at)) return false;
  for (; at + 16 <= end; at += 16)
    if (!chunk(at)) return false;
  for (; at < end; at += bytes)
    if (!element(at)) return false;
  return true;
}

uint32_t low_bits(uint32_t n) { return (1u << n) - 1; }

}  // namespace

void Checker::on(const CtaBegin& e) {
  cta_ = e.cta;
  shadow_.reset(e.shared_bytes, e.warps);
  device_.reset(e.warps);
  for (uint32_t at = e.initialised_from; at < e.shared_bytes; at += 16) shadow_.write_from_outside(at, 16);
  order_.begin(state_.order, e.ordinal, cluster_.empty() || cluster_[0] == this ? e.ordinal : cluster_[0]->order_.cta(),
               e.warps);
  local_written_.assign(size_t{e.kernel.local_bytes} * e.warps * kWarpSize, 0);
}

// ---- reports -------------------------------------------------------------------------------------------

bool Checker::is_noted(const Site& site) const {
  return state_.tolerated->size() >= kMostTolerated ||
         std::any_of(state_.tolerated->begin(), state_.tolerated->end(),
                     [&](const Finding& f) { return f.ptx.line == static_cast<int>(site.inst.line); });
}

void Checker::report(const Access& e, uint32_t i, uint64_t address, Outcome outcome) {
  using Verdict = SharedShadow::Verdict;
  const auto where = [&] { return fmt::format("{} bytes at {}", e.bytes_of(i), describe(state_, address)); };
  const auto race = [&](const char* does, const char* did) {
    report(e.site, "race", e.lane_of(i), [&] {
      return fmt::format("warp {} {} {} {} by warp {} with no barrier between", e.site.warp, does, where(), did,
                         outcome.other);
    });
  };
  switch (outcome.verdict) {
    case Verdict::kUninitialised:
      return report(e.site, "uninitialised", e.lane_of(i),
                    [&] { return fmt::format("read of {}, which was never written", where()); });
    case Verdict::kAsyncPending:
      return report(e.site, "async-pending", e.lane_of(i),
                    [&] { return fmt::format("access to {} while an asynchronous copy into it is pending", where()); });
    case Verdict::kReadAfterWrite: return race("reads", "written");
    case Verdict::kWriteAfterWrite: return race("writes", "written");
    case Verdict::kWriteAfterRead: return race("writes", "read");
    case Verdict::kOk: break;
  }
}

// ---- shared memory -------------------------------------------------------------------------------------

/// Checks common requests with little work. False: undecided, and nothing has changed that the general way would not
/// change too.
bool Checker::at_once(const SharedAccess& e) {
  if (e.strong || e.pieces || e.rank || e.holes || e.bytes < 4 || e.mask == 0) return false;
  const uint32_t warp = e.site.warp, bytes = e.bytes, n = 32 - static_cast<uint32_t>(__builtin_clz(e.mask));
  if (e.mask != ~0u >> (32 - n)) return false;
  const auto all = [&](auto chunk, auto words) {
    if (e.climbs && e.step == bytes) return each_piece(e.offset[0], bytes, chunk, words);
    for (uint32_t l = 0; l < n; ++l)
      if (!(bytes == 16 ? chunk(e.offset[l]) : words(e.offset[l]))) return false;
    return true;
  };
  if (e.op == Op::kWrite)
    return all([&](uint32_t at) { return shadow_.write_chunk(warp, at / 16, 0).ok(); },
               [&](uint32_t at) { return shadow_.write_words(warp, at / 4, bytes / 4).ok(); });
  if (e.op != Op::kRead) return false;
  const auto chunk = [&](uint32_t at) { return shadow_.read_chunk(warp, at / 16).ok(); };
  const auto words = [&](uint32_t at) { return shadow_.read_words(warp, at / 4, bytes / 4).ok(); };
  if (e.climbs && e.step == 0) return bytes == 16 ? chunk(e.offset[0]) : words(e.offset[0]);
  if (bytes == 4 && !(e.climbs && e.step == 4)) return shadow_.read_each_word(warp, e.offset, n);
  return all(chunk, words);
}

void Checker::on(const SharedAccess& e) {
  if ((all_written_ = at_once(e))) return;
  const uint32_t warp = e.site.warp;
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t i = first_lane(m), at = e.offset[i], bytes = e.bytes_of(i);
    const auto check = [&](Outcome outcome) {
      if (!outcome.ok()) report(e, i, kSharedBase + at, outcome);
    };
    Checker& owner = e.rank ? *cluster_[e.rank[i]] : *this;
    if (e.strong && e.is_request && !cluster_.empty()) order_.strong_shared(e, i, owner.order_.cta());
    if (&owner != this) {  // the other CTA's records; races between CTAs are not looked for
      SharedShadow& theirs = owner.shadow_;
      if (e.op != Op::kWrite) check(theirs.read_from_outside(at, bytes));
      if (e.op != Op::kRead) check(theirs.write_from_outside(at, bytes));
      continue;
    }
    if (e.strong && e.is_request) hand_over(warp, at, e.op, e.releases);
    if (e.op == Op::kCopyIn) {
      check(shadow_.async_issue(warp, at, bytes));
      continue;
    }
    if (e.op != Op::kWrite) check(shadow_.read(warp, at, bytes, e.strong, shadow_.written(at, bytes) ? e.needed : ~0u));
    if (e.op == Op::kRead) continue;
    const Outcome outcome = shadow_.write(warp, at, bytes, e.strong);
    // A flag: several warps may write the same constant.
    const bool same = e.constant && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite &&
                      std::memcmp(shared_.data() + at, e.constant, bytes) == 0;
    if (!same) check(outcome);
    if (e.holes) shadow_.unwrite(at, e.holes[i]);
  }
  if (e.releases) shadow_.advance();
}

// ---- device memory -------------------------------------------------------------------------------------

/// As for shared memory: checks 32 contiguous elements line by line.
bool Checker::at_once(const DeviceAccess& e) {
  if (e.address || e.strong || e.holes) return false;
  const uint64_t end = e.first + uint64_t{e.bytes} * kWarpSize;
  uint32_t line = 0;
  for (uint64_t at = e.first; at < end; ++line) {
    const auto begin = static_cast<uint32_t>(at % kLineBytes);
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kLineBytes - begin, end - at));
    const uint32_t slot = e.slot[line];
    const LineBits bits = LineBits::of(begin, begin + n);
    if (e.op == Op::kRead) {
      const uint64_t* valid = state_.memory.valid(slot);
      if (bits.low & ~valid[0] || bits.high & ~valid[1]) return false;
    }
    if (!(e.op == Op::kRead ? device_.read(e.site.warp, at, n) : device_.write(e.site.warp, at, n)).ok()) return false;
    if (order_.touch(e.site.warp, slot, bits, e.op == Op::kRead ? What::kRead : What::kWrite, MemoryScope::kSys))
      return false;
    at += n;
  }
  return true;
}

void Checker::on(const DeviceAccess& e) {
  if ((all_written_ = (e.inputs == e.mask && !e.strong) || at_once(e))) return;
  if (e.strong && e.is_request) order_.strong(e);
  const What what = e.op == Op::kRead ? e.strong ? What::kStrongRead : What::kRead
                    : e.strong        ? What::kStrongWrite
                                      : What::kWrite;
  const uint32_t together = in_order(e, what);
  for (uint32_t m = e.mask & ~e.inputs; m; m &= m - 1) {
    const uint32_t i = first_lane(m);
    if (e.strong && e.is_request) hand_over_device(e.site.warp, e.address_of(i), e.op, e.releases);
    if (e.op != Op::kWrite) check_read(e, i);
    if (e.op != Op::kRead) check_write(e, i);
    if (!(together >> i & 1)) check_others(e, i, what);
  }
  if (e.releases) shadow_.advance();
}

/// Elements without a race with other CTAs. Those in one line are checked together, as long as lines have several.
uint32_t Checker::in_order(const DeviceAccess& e, What what) {
  uint32_t in_order = 0;
  for (uint32_t left = e.mask & ~e.inputs; left;) {
    const uint32_t slot = e.slot_of(first_lane(left));
    uint32_t same = 0;
    LineBits bits;
    for (uint32_t m = left; m; m &= m - 1) {
      const uint32_t i = first_lane(m), at = e.address_of(i) % kLineBytes;
      if (e.slot_of(i) != slot) continue;
      same |= 1u << i;
      bits.add(LineBits::of(at, at + e.bytes_of(i)));
    }
    if (!slot || !order_.touch(e.site.warp, slot, bits, what, e.site.inst.scope)) in_order |= same;
    left &= ~same;
    if (!(same & (same - 1))) break;
  }
  return in_order;
}

/// Races with accesses of other CTAs.
void Checker::check_others(const DeviceAccess& e, uint32_t i, What what) {
  const uint32_t slot = e.slot_of(i), warp = e.site.warp, bytes = e.bytes_of(i);
  const uint64_t address = e.address_of(i);
  const uint32_t at = address % kLineBytes;
  if (!slot) return;
  const LineBits bits = LineBits::of(at, at + bytes);
  const MemoryScope scope = e.site.inst.scope;
  const AccessRecord* other = order_.touch(warp, slot, bits, what, scope);
  if (!other) return;
  const bool equal = what == What::kWrite && e.stores &&
                     (~state_.memory.valid(slot)[at >> 6] >> (at & 63) & low_bits(bytes)) == 0 &&
                     std::memcmp(state_.memory.data(slot) + at, e.stores + size_t{i} * e.stores_step, bytes) == 0;
  if (equal && !(other = order_.touch(warp, slot, bits, what, scope, true))) return;
  const bool both_strong = is_strong(what) && is_strong(other->what);
  const char* did = writes(other->what) ? "written" : "read";
  report(e.site, "race", e.lane_of(i), [&] {
    const std::string where = describe(state_, address);
    if (both_strong)
      return fmt::format(
          "access to {}, also {} by another CTA of this launch, and the scope of an access has only one of the CTAs",
          where, did);
    if (writes(what) && writes(other->what))
      return fmt::format("write to {}, also written by another CTA of this launch{}", where, "");
    return fmt::format("{} {}, {} by another CTA of this launch without synchronisation",
                       writes(what) ? "write to" : "read of", where, did);
  });
  order_.note(warp, slot, bits, what, scope, equal);
}

void Checker::check_read(const DeviceAccess& e, uint32_t i) {
  const uint64_t address = e.address_of(i);
  const uint32_t bytes = e.bytes_of(i), slot = e.slot_of(i), at = address % kLineBytes, all = low_bits(bytes);
  const uint32_t valid = slot ? static_cast<uint32_t>(state_.memory.valid(slot)[at >> 6] >> (at & 63)) & all : 0;
  if (all & e.needed & ~valid || !valid)
    report(e.site, "uninitialised", e.lane_of(i),
           [&] { return fmt::format("read of {}, which was never written", describe(state_, address)); });
  if (!slot) return;
  if (const Outcome o = device_.read(e.site.warp, address, bytes, e.strong); !o.ok()) report(e, i, address, o);
}

void Checker::check_write(const DeviceAccess& e, uint32_t i) {
  const uint64_t address = e.address_of(i);
  const uint32_t bytes = e.bytes_of(i), slot = e.slot_of(i), at = address % kLineBytes;
  const uint64_t bits = ((uint64_t{1} << bytes) - 1) << (at & 63), valid = state_.memory.valid(slot)[at >> 6] & bits;
  const bool same = e.constant && valid == bits && std::memcmp(state_.memory.data(slot) + at, e.constant, bytes) == 0;
  const Outcome outcome = device_.write(e.site.warp, address, bytes, e.strong);
  if (!outcome.ok() && !(same && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite))
    report(e, i, address, outcome);
}

// ---- local memory --------------------------------------------------------------------------------------

uint32_t Checker::written_local(uint32_t warp, uint32_t lane, uint32_t offset, uint32_t bytes) const {
  const size_t at = (size_t{warp} * kWarpSize + lane) * state_.kernel.local_bytes + offset;
  uint32_t written = 0;
  for (uint32_t i = 0; i < bytes; ++i) written |= uint32_t{local_written_[at + i]} << i;
  return written;
}

void Checker::on(const LocalAccess& e) {
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (e.op == Op::kRead) {
      const uint32_t written = written_local(e.site.warp, l, e.offset[l], e.bytes);
      if ((low_bits(e.bytes) & e.needed & ~written) || !written)
        report(e.site, "uninitialised", l, [&] {
          return fmt::format("read of {}, which the thread never wrote", describe(state_, kLocalBase + e.offset[l]));
        });
    } else {
      const size_t at = (size_t{e.site.warp} * kWarpSize + l) * state_.kernel.local_bytes + e.offset[l];
      for (uint32_t i = 0; i < e.bytes; ++i) local_written_[at + i] = !e.holes || !(e.holes[l] >> i & 1);
    }
  }
}

// ---- synchronisation -----------------------------------------------------------------------------------

/// A strong write hands on what the warp did before its last fence, or all it did if it releases; a strong read takes
/// over what was handed on there.
void Checker::hand_over(uint32_t warp, uint32_t offset, Op op, bool releases) {
  if (op != Op::kWrite && shadow_.completed(offset)) shadow_.observe(offset, warp), order_.observe(offset, warp);
  if (op == Op::kRead || !(releases || shadow_.has_fenced(warp))) return;
  releases ? shadow_.signal(offset, warp, false) : shadow_.signal_fenced(offset, warp);
  order_.signal(offset, warp);
  shadow_.complete(offset);
  order_.complete(offset);
}

void Checker::hand_over_device(uint32_t warp, uint64_t address, Op op, bool releases) {
  const bool gives = op != Op::kRead && (releases || shadow_.has_fenced(warp));
  const uint32_t at = gives ? device_.make_place(address) : device_.place(address);
  if (at != DeviceShadow::kNowhere) hand_over(warp, at, op, releases);
}

void Checker::require_stamps(uint32_t lane) const {
  if (shadow_.stamps_exhausted())
    throw Fault{"instruction-limit", "more than 2^27 barriers and fences in one CTA", lane};
}

void Checker::on(const AsyncLand& e) {
  for (const uint32_t at : e.offsets) shadow_.async_land(e.warp, at, e.bytes);
}

void Checker::on(const BarrierArrive& e) {
  if (e.orders) order_.arrive(e.id, e.site.warp), shadow_.arrive(e.id, e.site.warp, e.waits);
  require_stamps(first_lane(e.mask));
}

void Checker::on(const BarrierRelease& e) {
  shadow_.release(e.id, e.warps);
  order_.release(e.id, e.warps);
  device_.settle();
}

void Checker::on(const Fence& e) {
  order_.fence(e);
  shadow_.fence(e.site.warp);
}

void Checker::on(const PhaseArrive& e) {
  order_.signal(e.barrier, e.warp);
  shadow_.signal(e.barrier, e.warp);
  require_stamps(e.lane);
}

}  // namespace roofgen::sim
