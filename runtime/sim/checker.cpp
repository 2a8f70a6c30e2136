#include "runtime/sim/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/wgmma.h"

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

/// Words for which it is remembered who read them unwritten.
constexpr size_t kMostUnwrittenReads = size_t{1} << 16;

uint32_t low_bits(uint32_t n) { return (1u << n) - 1; }

/// Of a read that may return the bytes from before the launch.
const char* name_of_non_coherent(const Inst& in) {
  return in.kind == Kind::kTexture ? "texture read of" : "ld.global.nc of";
}

}  // namespace

void Checker::on(const CtaBegin& e) {
  cta_ = e.cta;
  n_warps_ = e.warps;
  exited_ = 0;
  waited_ = {};
  bulk_sources_.clear();
  const uint32_t engines = e.kernel.has_wgmma ? e.warps / kWarpgroup : 0;
  batches_.assign(e.kernel.has_wgmma ? e.warps : 0, {});
  last_product_.assign(engines, 0);
  shadow_.reset(e.shared_bytes, e.warps, engines, e.kernel.has_tensor_memory);
  if (e.kernel.has_tensor_memory) tensor_.begin(e.warps);
  for (uint32_t rank = 0; rank < cluster_.size(); ++rank)
    if (cluster_[rank] == this) shadow_.join_cluster(rank_ = rank, static_cast<uint32_t>(cluster_.size()));
  begin_pairs();
  log_.reset(e.shared_bytes, e.warps);
  releases_.reset();
  excepted_ = 0;
  initialised_.clear();
  cluster_phase_ = 0;
  std::fill(std::begin(in_cluster_), std::end(in_cluster_), InCluster{});
  lines_.reset();
  notes_.clear();
  unwritten_reads_.clear();
  raced_.clear();
  device_.reset(e.warps);
  for (uint32_t at = e.initialised_from; at < e.shared_bytes; at += 16) shadow_.write_from_outside(at, 16);
  order_.begin(state_.order, e.ordinal, cluster_.empty() || cluster_[0] == this ? e.ordinal : cluster_[0]->order_.cta(),
               e.warps);
  local_written_.assign(size_t{e.kernel.local_bytes} * e.warps * kWarpSize, 0);
}

// ---- reports -------------------------------------------------------------------------------------------

Finding* Checker::noted(uint32_t pc, const char* kind) {
  for (Note& n : notes_)
    if (n.pc == pc && n.finding.kind == kind) return &n.finding;
  return nullptr;
}

void Checker::hand_in(std::vector<Finding>& all) {
  for (Note& n : notes_) add_finding(state_.go_on, all, std::move(n.finding));
  notes_.clear();
}

std::string Checker::at(std::optional<uint32_t> pc) const {
  if (!pc) return "";
  const Where& source = state_.kernel.sources[*pc];
  return source.line > 0 ? fmt::format(" at {}:{}", source.file, source.line)
                         : fmt::format(" at PTX line {}", state_.kernel.code[*pc].line);
}

template <class F>
void Checker::report_unwritten(const Site& site, uint32_t lane, uint64_t address, F&& message) {
  if (raced_.count(address / 4)) return;
  report(site, "uninitialised", lane, std::forward<F>(message));
  if (unwritten_reads_.size() < kMostUnwrittenReads)
    unwritten_reads_.emplace(address / 4, UnwrittenRead{site.pc, site.warp});
}

void Checker::report_unwritten_value(const Site& load, uint32_t lane, uint64_t address, bool stored, const Site& use) {
  report_unwritten(load, lane, address, [&] {
    const bool local = address >= kLocalBase && address < kLocalWindowEnd;
    const bool of_call =
        local && std::any_of(state_.kernel.code.begin(), state_.kernel.code.end(), [&](const Inst& in) {
          return in.kind == Kind::kNop && in.sub == kNopReturn &&
                 address - kLocalBase >= static_cast<uint64_t>(in.imm) && address - kLocalBase < in.target;
        });
    if (stored)
      return fmt::format("read of {}, where an undefined value was stored; the value is used{}",
                         describe(state_, address), at(use.pc));
    return fmt::format("read of {}, which {} wrote; the value is used{}", describe(state_, address),
                       of_call ? "no call or only one that has returned"
                       : local ? "the thread never"
                               : "nothing",
                       at(use.pc));
  });
}

/// A write races with a read of bytes that nothing had written: this is the cause of the read's finding.
void Checker::strike(uint64_t address, uint32_t bytes, uint32_t writer) {
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    const auto [begin, end] = unwritten_reads_.equal_range(word);
    for (auto at = begin; at != end;) {
      if (at->second.warp == writer) {
        ++at;
        continue;
      }
      if (Finding* f = noted(at->second.pc, "uninitialised")) --f->count;
      at = unwritten_reads_.erase(at);
    }
    if (raced_.size() < kMostUnwrittenReads) raced_.insert(word);
  }
  std::erase_if(notes_, [](const Note& n) { return n.finding.count == 0; });
}

/// `place`: the instruction of the other access of a race, where the records have it.
void Checker::report(const Access& e, uint32_t i, uint64_t address, Outcome outcome, std::optional<uint32_t> place) {
  using Verdict = SharedShadow::Verdict;
  const auto where = [&] { return fmt::format("{} bytes at {}", e.bytes_of(i), describe(state_, address)); };
  const auto race = [&](const char* does, const char* did) {
    const auto what = [&] {
      return fmt::format("warp {} {} {} {} by warp {}{}", e.site.warp, does, where(), did, outcome.other, at(place));
    };
    if (outcome.relies)
      return report(e.site, "unfenced", e.lane_of(i),
                    [&] { return what() + ", ordered only by a volatile or relaxed read with no fence after it"; });
    report(e.site, "race", e.lane_of(i), [&] {
      if (outcome.other >= n_warps_)
        return fmt::format("warp {} {} {} {} by another CTA of the cluster, and nothing orders them", e.site.warp, does,
                           where(), did);
      return what() + " with no barrier between";
    });
  };
  if (outcome.verdict == Verdict::kWriteAfterRead && outcome.other == n_warps_ && tensor_.used())
    return report(e.site, "async-pending", e.lane_of(i), [&] {
      return fmt::format(
          "warp {} writes {} while the tensor core may still read them (its last read is{}): no wait at the mbarrier "
          "of a tcgen05.commit is known to cover it",
          e.site.warp, where(), at(last_core_pc_));
    });
  if (outcome.verdict == Verdict::kWriteAfterRead && outcome.other >= n_warps_ &&
      outcome.other < n_warps_ + last_product_.size())
    return report(e.site, "async-pending", e.lane_of(i), [&] {
      const uint32_t group = outcome.other - n_warps_;
      return fmt::format(
          "warp {} writes {} while a wgmma of warps {}-{} (their last is{}) may still read them: no wgmma.wait_group "
          "is "
          "known to cover it",
          e.site.warp, where(), kWarpgroup * group, kWarpgroup * group + 3, at(last_product_[group]));
    });
  switch (outcome.verdict) {
    case Verdict::kUninitialised:
      return report_unwritten(e.site, e.lane_of(i), address,
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
  if (e.op == Op::kWrite && !bulk_sources_.empty()) return false;
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
               [&](uint32_t at) { return shadow_.write_words(warp, at / 4, bytes / 4).ok(); }) &&
           at_once_in_order(e);
  if (e.op != Op::kRead) return false;
  const auto chunk = [&](uint32_t at) { return shadow_.read_chunk(warp, at / 16).ok(); };
  const auto words = [&](uint32_t at) { return shadow_.read_words(warp, at / 4, bytes / 4).ok(); };
  const bool in_order = e.climbs && e.step == 0 ? bytes == 16 ? chunk(e.offset[0]) : words(e.offset[0])
                        : bytes == 4 && !(e.climbs && e.step == 4) ? shadow_.read_each_word(warp, e.offset, n)
                                                                   : all(chunk, words);
  return in_order && at_once_in_order(e);
}

bool is_collective(const Access& e) {
  return e.site.inst.kind == Kind::kLdmatrix || e.site.inst.kind == Kind::kWmmaLoad;
}

bool Checker::at_once_in_order(const SharedAccess& e) {
  const uint32_t warp = e.site.warp, pc = e.site.pc, bytes = e.bytes;
  const bool collective = is_collective(e);
  if (e.mask == ~0u && !collective && e.climbs && e.step == bytes)
    return e.op == Op::kRead ? log_.read_row(rows_, warp, pc, e.offset[0] / 4, bytes)
                             : log_.write_row(rows_, warp, pc, e.offset[0] / 4, bytes);
  if (collective && bytes == 16) {
    for (uint32_t m = e.mask; m; m &= m - 1)
      if (!log_.read_chunk({warp, first_lane(m), pc, true}, e.offset[first_lane(m)] / 4)) return false;
    return true;
  }
  if (e.op == Op::kRead && bytes == 4 && !collective)
    return log_.read_each_word(warp, pc, e.offset, 32 - static_cast<uint32_t>(__builtin_clz(e.mask)));
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (!(e.op == Op::kRead ? log_.read_words({warp, l, pc, collective}, e.offset[l] / 4, bytes / 4)
                            : log_.write_words({warp, l, pc}, e.offset[l] / 4, bytes / 4)))
      return false;
  }
  return true;
}

/// Targets of cp.async. The elements that are in order; nothing has changed for the others.
uint32_t Checker::issue_at_once(const SharedAccess& e) {
  if (e.bytes != 16 || !bulk_sources_.empty() || log_.accessed(e.site.warp)) return 0;
  uint32_t done = 0;
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t at = e.offset[first_lane(m)];
    if (!shadow_.async_issue_quickly(e.site.warp, at / 16)) continue;
    log_.issue(e.site.pc, at / 4);
    done |= m & (0 - m);
  }
  return done;
}

uint64_t place_of(const SharedAccess& e, uint32_t i) { return e.offset[i]; }
uint64_t place_of(const DeviceAccess& e, uint32_t i) { return e.address_of(i); }

/// A race between two lanes of a warp. `there`: the bytes before the access.
template <class E>
void Checker::report_lanes(const E& e, uint32_t i, WordLog::Other other, uint64_t address, const std::byte* there) {
  const uint32_t lane = e.lane_of(i), bytes = e.bytes_of(i), o = other.lane;
  if (e.op == Op::kWrite && other.wrote && e.values) {
    // Lanes may write the same value, also with one instruction.
    const auto equal = [&](const std::byte* value) { return std::memcmp(value, e.value_of(i), bytes) == 0; };
    if (equal(there) ||
        (other.pc == e.site.pc && o < i && e.mask >> o & 1 && place_of(e, o) == place_of(e, i) && equal(e.value_of(o))))
      return;
  }
  report(
      e.site, "race", lane,
      [&] {
        return fmt::format("lane {} of warp {} {} {} bytes at {} {} by {}{} with no __syncwarp between", lane,
                           e.site.warp, e.op == Op::kRead ? "reads" : "writes", bytes, describe(state_, address),
                           other.wrote ? "written" : "read", other.many ? "other lanes" : fmt::format("lane {}", o),
                           at(other.pc));
      },
      true);
}

/// All elements are at one place and have one value.
bool Checker::is_one_value(const SharedAccess& e) {
  if (!e.values || e.bytes > 4) return false;
  for (uint32_t i = 1; i < kWarpSize; ++i)
    if (e.offset[i] != e.offset[0] || std::memcmp(e.value_of(i), e.value_of(0), e.bytes) != 0) return false;
  return true;
}

/// An access through the address of one variable that is outside of it. The memory may be another variable's.
void Checker::check_variable(const SharedAccess& e) {
  const uint32_t number = state_.kernel.variable_at[e.site.pc];
  if (!number || e.rank || !e.is_request) return;
  const SharedVariable& v = state_.kernel.shared_variables[number - 1];
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t i = first_lane(m), at = e.offset[i], bytes = e.bytes_of(i);
    if (at >= v.begin && at + bytes <= v.end) continue;
    report(e.site, "out-of-array", e.lane_of(i), [&] {
      const std::string where = at < v.begin  ? fmt::format("{} bytes before", v.begin - at)
                                : at >= v.end ? fmt::format("{} bytes past the end of", at - v.end)
                                              : "in part past the end of";
      return fmt::format("{} of {} bytes at {}, {} {}{}", e.op == Op::kRead ? "read" : "write", bytes,
                         describe(state_, kSharedBase + at), where, v.name,
                         at < v.begin ? "" : fmt::format(" ({} bytes)", v.end - v.begin));
    });
  }
}

std::optional<Checker::Unreleased> Checker::unreleased(const SharedShadow& by, uint32_t reader, uint32_t offset,
                                                       uint32_t bytes, bool writes) const {
  for (uint32_t v = 0; v < n_warps_; ++v) {
    if (&by == &shadow_ && v == reader) continue;
    const LaneReleases::Release* const release = releases_.find(v, by.seen_of(shadow_, reader, v));
    if (!release) continue;
    const auto excepted = [&](uint32_t stamp, const std::optional<WordLog::Last>& last) {
      return stamp > release->whole && stamp <= release->stamp && last && !release->covers(*last);
    };
    for (uint32_t at = offset; at < offset + bytes; at += (offset | bytes) % 4 ? 1 : 4) {
      if (const auto last = log_.last_write(v, at); excepted(shadow_.wrote_at(v, at), last))
        return Unreleased{v, last->lane, true, log_.place_of_write(v, at)};
      if (const auto last = log_.last_read(v, at); writes && excepted(shadow_.read_at(v, at), last))
        return Unreleased{v, last->lane, false, log_.place_of_read(v, at)};
    }
  }
  return std::nullopt;
}

void Checker::report_unreleased(const Site& site, uint32_t lane, uint32_t offset, const char* does,
                                const Unreleased& other) {
  report(site, "race", lane, [&] {
    return fmt::format(
        "warp {} {} {}, {} by lane {} of warp {}{}: another lane of that warp arrived at an mbarrier after it, with no "
        "__syncwarp between",
        site.warp, does, describe(state_, kSharedBase + offset), other.wrote ? "written" : "read", other.lane,
        other.warp, at(other.pc));
  });
}

/// An access to the shared memory of another CTA.
void Checker::access_other(const SharedAccess& e, uint32_t i) {
  Checker& owner = *cluster_[e.rank[i]];
  const uint32_t at = e.offset[i], bytes = e.bytes_of(i), warp = e.site.warp;
  if (owner.releases_.any() && !e.strong)
    if (const auto other = owner.unreleased(shadow_, warp, at, bytes, e.op != Op::kRead))
      report_unreleased(e.site, e.lane_of(i), at, e.op == Op::kRead ? "reads" : "writes", *other);
  const auto check = [&](SharedShadow::From what) {
    using Verdict = SharedShadow::Verdict;
    const Outcome o = owner.shadow_.access_from(shadow_, warp, at, bytes, what, e.strong);
    if (o.ok()) return;
    if (o.verdict == Verdict::kUninitialised || o.verdict == Verdict::kAsyncPending)
      return report(e, i, kSharedBase + at, o);
    const bool product = o.other >= n_warps_;
    report(e.site, product ? "async-pending" : "race", e.lane_of(i), [&] {
      return fmt::format(
          "warp {} {} {} bytes at {} of the CTA of rank {}, which {} of that CTA {}: nothing orders them", warp,
          what == SharedShadow::From::kRead ? "reads" : "writes", bytes, describe(state_, kSharedBase + at), e.rank[i],
          product && tensor_.used() ? "the tensor core"
          : product                 ? fmt::format("a wgmma of warps {}-{}", (o.other - n_warps_) * kWarpgroup,
                                                  (o.other - n_warps_) * kWarpgroup + 3)
                                    : fmt::format("warp {}", o.other),
          product                                 ? "may still read"
          : o.verdict == Verdict::kWriteAfterRead ? "reads"
                                                  : "writes");
    });
  };
  if (e.op == Op::kRead || e.op == Op::kAtomic) check(SharedShadow::From::kRead);
  if (e.op != Op::kRead) check(e.op == Op::kCopyIn ? SharedShadow::From::kCopyIn : SharedShadow::From::kWrite);
  // Who reads such a flag has seen what was written before it; between CTAs of a cluster that is all that is known.
  if (e.strong && e.op != Op::kRead && e.is_request)
    owner.shadow_.signal_from(at, shadow_, warp), owner.shadow_.complete(at);
}

/// Each offers what all do, before the first of them takes it.
void Checker::meet() {
  // The events of a warp between its arrival and its wait count as known too. An order that is too strong gives no
  // false finding.
  if (pairs_) pairs_->meet(0, n_warps_ * static_cast<uint32_t>(std::max<size_t>(cluster_.size(), 1)));
  for (Checker* c : cluster_)
    for (uint32_t m = c->exited_; m; m &= m - 1) c->shadow_.arrive(kClusterBarrierId, first_lane(m), true);
  for (size_t i = 0; i < cluster_.size(); ++i)
    for (size_t j = i + 1; j < cluster_.size(); ++j) cluster_[i]->shadow_.meet(cluster_[j]->shadow_);
}

void Checker::on(const SharedAccess& e) {
  unwritten_ = 0;
  if (!state_.kernel.variable_at.empty()) [[unlikely]]
    check_variable(e);
  const uint32_t warp = e.site.warp;
  if (!e.strong && e.op != Op::kCopyIn && !is_collective(e)) {
    uint32_t lanes = e.pieces ? 0 : e.mask;
    for (uint32_t m = e.pieces ? e.mask : 0; m; m &= m - 1) lanes |= 1u << e.lane_of(first_lane(m));
    releases_.touch(warp, lanes);
  }
  const bool quick = !(excepted_ >> warp & 1);
  if (quick && at_once(e)) return;
  const uint32_t done = quick && e.op == Op::kCopyIn && !e.rank ? issue_at_once(e) : 0;
  shadow_.record_races(true);
  for (uint32_t m = e.mask & ~done; m; m &= m - 1) {
    const uint32_t i = first_lane(m), at = e.offset[i], bytes = e.bytes_of(i);
    const WordLog::Thread thread{warp, e.lane_of(i), e.site.pc, is_collective(e)};
    // One finding for an element: what follows is likely of the same cause.
    bool good = true;
    const auto check = [&](Outcome outcome, bool lazily = true) {
      using Verdict = SharedShadow::Verdict;
      if (outcome.ok()) return;
      if (outcome.verdict == Verdict::kUninitialised && e.lazily && lazily) {
        unwritten_ |= 1u << i;
        return;
      }
      good = false;
      report(e, i, kSharedBase + at, outcome,
             outcome.other >= n_warps_                     ? std::nullopt
             : outcome.verdict == Verdict::kWriteAfterRead ? log_.place_of_read(outcome.other, at)
                                                           : log_.place_of_write(outcome.other, at));
    };
    Checker& owner = e.rank ? *cluster_[e.rank[i]] : *this;
    if (e.strong && e.is_request && !cluster_.empty()) order_.strong_shared(e, i, owner.order_.cta());
    if (&owner != this) {
      if (e.strong && e.is_request && pairs_) pair_strong(e, owner.key_of_word(at));
      access_other(e, i);
      continue;
    }
    if (e.strong && e.is_request) hand_over(e, at);
    if (e.strong && e.is_request && pairs_) pair_strong(e, key_of_word(at));
    if (!quick && !e.strong)
      if (const auto other = unreleased(shadow_, warp, at, bytes, e.op != Op::kRead)) {
        good = false;
        report_unreleased(e.site, e.lane_of(i), at, e.op == Op::kRead ? "reads" : "writes", *other);
      }
    if (e.op != Op::kWrite && e.op != Op::kCopyIn) {
      check(shadow_.read(warp, at, bytes, e.strong && !e.is_datum));
      if (e.strong && !e.is_datum && e.op == Op::kRead) shadow_.note_strong_read(warp, at, bytes);
      if (const WordLog::Other other = log_.read(thread, at, bytes, e.strong && !e.is_datum); other.is && good)
        report_lanes(e, i, other, kSharedBase + at, shared_.data() + at), good = false;
    }
    if (e.op == Op::kRead) continue;
    if (bulk_sources_.count(at / 16) && good) {
      good = false;
      report(e.site, "async-pending", e.lane_of(i), [&] {
        return fmt::format("write to {} bytes at {} while a bulk copy or reduction may still read them", bytes,
                           describe(state_, kSharedBase + at));
      });
    }
    const uint32_t written = shadow_.written(at, bytes);
    const Outcome outcome =
        e.op == Op::kCopyIn ? shadow_.async_issue(warp, at, bytes) : shadow_.write(warp, at, bytes, e.strong);
    // Several warps may write the same value.
    const bool same = e.values && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite &&
                      std::memcmp(shared_.data() + at, e.value_of(i), bytes) == 0;
    if (!same && good) check(outcome);
    if (outcome.verdict == SharedShadow::Verdict::kWriteAfterRead && written != low_bits(bytes))
      strike(kSharedBase + at, bytes, warp);
    if (e.op == Op::kCopyIn && log_.write_words(thread, at / 4, bytes / 4)) continue;
    // PTX ISA, "Asynchronous Operations": tcgen05.alloc is in order with other accesses to the same address.
    if (e.site.inst.kind == Kind::kTensor) continue;
    if (const WordLog::Other other = log_.write(thread, at, bytes, e.strong); other.is && good)
      report_lanes(e, i, other, kSharedBase + at, shared_.data() + at);
    if (e.holes) shadow_.unwrite(at, e.holes[i]);
  }
  // Whichever of these lanes writes last, each then reads the value that it wrote.
  if (e.op == Op::kWrite && e.mask == ~0u && is_one_value(e)) log_.land(warp, std::nullopt, e.offset[0] & ~3u, 4);
  shadow_.record_races(false);
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
    const uint32_t warp = e.site.warp, first = static_cast<uint32_t>(at - e.first);
    if (!(e.op == Op::kRead ? device_.read(warp, at, n) : device_.write(warp, at, n)).ok()) return false;
    if (!(e.op == Op::kRead ? lines_.read_row(warp, e.site.pc, at, n, first, e.bytes)
                            : lines_.write_row(warp, e.site.pc, at, n, first, e.bytes)))
      return false;
    if (order_.touch(warp, slot, bits, e.op == Op::kRead ? What::kRead : What::kWrite, MemoryScope::kSys)) return false;
    at += n;
  }
  return true;
}

/// ld.global.nc may read what the memory held before the launch: no CTA may write its bytes, before or after. A texture
/// may be written after it was read (CUDA C++ Programming Guide, "Read/Write Coherency" of texture and surface memory).
void Checker::check_read_only(const DeviceAccess& e) {
  const bool reads = e.op == Op::kRead;
  for (uint32_t left = e.mask & ~e.inputs; left;) {
    const uint32_t first = first_lane(left), slot = e.slot_of(first);
    LineBits bits;
    for (uint32_t m = left; m && e.slot_of(first_lane(m)) == slot; m &= m - 1, left = m) {
      const uint32_t i = first_lane(m), at = e.address_of(i) % kLineBytes;
      bits.add(LineBits::of(at, at + e.bytes_of(i)));
    }
    const bool is_texture = e.site.inst.kind == Kind::kTexture;
    if (!slot || !(is_texture ? order_.wrote(slot, bits)
                   : reads    ? order_.read_only(slot, bits)
                              : order_.was_read_only(slot, bits)))
      continue;
    report(e.site, "race", e.lane_of(first), [&] {
      const std::string where = describe(state_, e.address_of(first));
      return reads ? fmt::format("{} {}, which this launch has written", name_of_non_coherent(e.site.inst), where)
                   : fmt::format("write to {}, which ld.global.nc has read in this launch", where);
    });
  }
}

/// Whether these lanes are after a griddepcontrol.wait, their own or that of a warp that they synchronised with.
bool Checker::has_waited(uint32_t warp, uint32_t lanes) {
  uint32_t& waited = waited_[warp].lanes;
  for (uint32_t other = 0; other < n_warps_ && (lanes & ~waited); ++other)
    if (other != warp && waited_[other].at && shadow_.has_seen(warp, other, waited_[other].at)) waited = ~0u;
  return !(lanes & ~waited);
}

/// The launches before a dependent launch may still run.
void Checker::check_prerequisites(const DeviceAccess& e) {
  const bool reads = e.op == Op::kRead, read_only = reads && reads_non_coherently(e.site.inst);
  if (waited_[e.site.warp].lanes == ~0u && state_.prerequisites->all_end() && !read_only) return;
  for (uint32_t m = e.mask & ~e.inputs; m; m &= m - 1) {
    const uint32_t i = first_lane(m), lane = e.lane_of(i);
    const bool waited = has_waited(e.site.warp, 1u << lane);
    const auto [grid, written, ends] =
        state_.prerequisites->conflict(e.address_of(i), e.bytes_of(i), !reads, waited && !read_only);
    if (!grid) continue;
    report(e.site, "race", lane, [&] {
      const std::string what =
          fmt::format("{} {}, which {} {}",
                      read_only ? name_of_non_coherent(e.site.inst)
                      : reads   ? "read of"
                                : "write to",
                      describe(state_, e.address_of(i)), grid->kernel, written ? "writes" : "reads");
      return !ends    ? fmt::format("{}: no launch after {} executed griddepcontrol.wait, so it may still run", what,
                                    grid->kernel)
             : waited ? fmt::format("{} while this launch may have begun", what)
                      : fmt::format("{}, before a griddepcontrol.wait: {} may still run", what, grid->kernel);
    });
  }
}

void Checker::on(const GridControl& e) {
  if (!state_.conduct) return;
  Waited& waited = waited_[e.site.warp];
  if (!e.waits) {
    if (!has_waited(e.site.warp, e.mask)) state_.conduct->triggered_early = true;
    return;
  }
  state_.conduct->waited = true;
  waited.lanes |= e.mask;
  if (waited.at) return;
  shadow_.advance();  // what the warp did before does not come after the wait
  waited.at = shadow_.now();
}

void Checker::on(const DeviceAccess& e) {
  unwritten_ = 0;
  if (state_.prerequisites) [[unlikely]]
    check_prerequisites(e);
  if (e.op == Op::kRead ? reads_non_coherently(e.site.inst) : order_.any_read_only()) [[unlikely]]
    check_read_only(e);
  if ((e.inputs == e.mask && !e.strong) || at_once(e)) return;
  if (e.strong && e.is_request) order_.strong(e);
  const What what = e.op == Op::kRead ? e.strong ? What::kStrongRead : What::kRead
                    : e.strong        ? What::kStrongWrite
                                      : What::kWrite;
  const InOrder together = in_order(e, what);
  shadow_.record_races(true);
  for (uint32_t m = e.mask & ~e.inputs & ~together.all; m; m &= m - 1) {
    const uint32_t i = first_lane(m);
    if (e.strong && e.is_request) hand_over_device(e, e.address_of(i));
    if (e.op != Op::kWrite) check_read(e, i);
    if (e.op != Op::kRead) check_write(e, i);
    if (!(together.others >> i & 1)) check_others(e, i, what);
    if (e.site.inst.kind == Kind::kBulkCopy && e.slot_of(i)) check_device_proxy(e, i);
    const WordLog::Thread thread{e.site.warp, e.lane_of(i), e.site.pc, is_collective(e)};
    const uint64_t address = e.address_of(i);
    const WordLog::Other other = e.op == Op::kRead ? lines_.read(thread, address, e.bytes_of(i), e.strong)
                                                   : lines_.write(thread, address, e.bytes_of(i), e.strong);
    if (other.is) report_lanes(e, i, other, address, state_.memory.data(e.slot_of(i)) + address % kLineBytes);
  }
  shadow_.record_races(false);
  if (e.releases) shadow_.advance();
}

/// Elements in one line are checked together, as long as lines have several.
Checker::InOrder Checker::in_order(const DeviceAccess& e, What what) {
  InOrder in_order;
  for (uint32_t left = e.mask & ~e.inputs; left;) {
    const uint32_t slot = e.slot_of(first_lane(left));
    uint32_t same = 0;
    LineBits bits;
    for (uint32_t m = left; m; m &= m - 1) {
      const uint32_t i = first_lane(m), at = e.address_of(i) % kLineBytes;
      if (e.slot_of(i) != slot) continue;
      same |= 1u << i;
      bits.add(LineBits::of(at, at + e.bytes_of(i)));
      if (!e.at_one_place) continue;
      same = e.mask;
      break;
    }
    if (!slot || !order_.touch(e.site.warp, slot, bits, what, e.site.inst.scope)) {
      in_order.others |= same;
      if (slot && what == What::kRead && read_together(e, same, bits)) in_order.all |= same;
    }
    left &= ~same;
    if (!(same & (same - 1))) break;
  }
  return in_order;
}

/// Plain reads of one line by lanes of one warp. False: undecided, and nothing has changed that the general way would
/// not change too.
bool Checker::read_together(const DeviceAccess& e, uint32_t same, LineBits bits) {
  const uint32_t first = first_lane(same), warp = e.site.warp;
  const uint64_t line = e.address_of(first) & ~uint64_t{kLineBytes - 1};
  const uint64_t* valid = state_.memory.valid(e.slot_of(first));
  if (e.pieces || is_collective(e) || bits.without({valid[0], valid[1]}).any()) return false;
  if (!lines_.is_unwritten(warp, line, bits) || !device_.read(warp, line, bits).ok()) return false;
  uint32_t* const readers = lines_.readers(warp, line, e.site.pc);
  for (uint32_t m = same; m; m &= m - 1) {
    uint32_t* const from = readers + e.address_of(first_lane(m)) % kLineBytes;
    for (uint32_t i = 0; i < e.bytes; ++i) from[i] |= e.at_one_place ? same : m & (0 - m);
    if (e.at_one_place) break;
  }
  return true;
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
  const bool equal = what == What::kWrite && e.values &&
                     (~state_.memory.valid(slot)[at >> 6] >> (at & 63) & low_bits(bytes)) == 0 &&
                     std::memcmp(state_.memory.data(slot) + at, e.value_of(i), bytes) == 0;
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

/// A bulk copy reads device memory through the asynchronous proxy.
void Checker::check_device_proxy(const DeviceAccess& e, uint32_t i) {
  const uint32_t slot = e.slot_of(i), at = e.address_of(i) % kLineBytes;
  if (e.op != Op::kRead) return order_.note_copy(slot);
  if (e.strong) return;  // a tensor map
  const AccessRecord* const write = order_.write_without_proxy_fence(slot, LineBits::of(at, at + e.bytes_of(i)));
  if (!write) return;
  report(e.site, "race", e.lane_of(i), [&] {
    return fmt::format(
        "a bulk copy reads {} bytes at {}, which {} CTA has written in this launch, with no "
        "fence.proxy.async between",
        e.bytes_of(i), describe(state_, e.address_of(i)), write->cta == order_.cta() ? "this" : "another");
  });
}

void Checker::check_read(const DeviceAccess& e, uint32_t i) {
  const uint64_t address = e.address_of(i);
  const uint32_t bytes = e.bytes_of(i), slot = e.slot_of(i), at = address % kLineBytes, all = low_bits(bytes);
  const uint32_t valid = slot ? static_cast<uint32_t>(state_.memory.valid(slot)[at >> 6] >> (at & 63)) & all : 0;
  if (e.lazily)
    unwritten_ |= static_cast<uint32_t>(valid != all) << i;
  else if (all & e.needed & ~valid || !valid)
    report_unwritten(e.site, e.lane_of(i), address,
                     [&] { return fmt::format("read of {}, which was never written", describe(state_, address)); });
  if (!slot) return;
  if (const Outcome o = device_.read(e.site.warp, address, bytes, e.strong); !o.ok())
    report(e, i, address, o, lines_.place_of_write(o.other, address));
  if (e.strong && e.op == Op::kRead) device_.note_strong_read(e.site.warp, address, bytes);
}

void Checker::check_write(const DeviceAccess& e, uint32_t i) {
  const uint64_t address = e.address_of(i);
  const uint32_t bytes = e.bytes_of(i), slot = e.slot_of(i), at = address % kLineBytes;
  const uint64_t bits = ((uint64_t{1} << bytes) - 1) << (at & 63), valid = state_.memory.valid(slot)[at >> 6] & bits;
  const Outcome outcome = device_.write(e.site.warp, address, bytes, e.strong);
  // Several warps may write the same value.
  const bool equal = e.values && valid == bits && outcome.verdict == SharedShadow::Verdict::kWriteAfterWrite &&
                     std::memcmp(state_.memory.data(slot) + at, e.value_of(i), bytes) == 0;
  if (!outcome.ok() && !equal)
    report(e, i, address, outcome,
           outcome.verdict == SharedShadow::Verdict::kWriteAfterRead ? std::nullopt
                                                                     : lines_.place_of_write(outcome.other, address));
  if (outcome.verdict == SharedShadow::Verdict::kWriteAfterRead && valid != bits) strike(address, bytes, e.site.warp);
}

// ---- local memory --------------------------------------------------------------------------------------

uint32_t Checker::written_local(uint32_t warp, uint32_t lane, uint32_t offset, uint32_t bytes) const {
  const size_t at = (size_t{warp} * kWarpSize + lane) * state_.kernel.local_bytes + offset;
  uint32_t written = 0;
  for (uint32_t i = 0; i < bytes; ++i) written |= uint32_t{local_written_[at + i]} << i;
  return written;
}

void Checker::forget_local(uint32_t warp, uint32_t mask, uint32_t begin, uint32_t end) {
  for (uint32_t m = mask; m; m &= m - 1)
    std::fill_n(&local_written_[(size_t{warp} * kWarpSize + first_lane(m)) * state_.kernel.local_bytes + begin],
                end - begin, uint8_t{0});
}

void Checker::on(const LocalAccess& e) {
  unwritten_ = 0;
  for (uint32_t m = e.mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (e.op == Op::kRead) {
      const uint32_t written = written_local(e.site.warp, l, e.offset[l], e.bytes);
      if (e.lazily)
        unwritten_ |= static_cast<uint32_t>(written != low_bits(e.bytes)) << l;
      else if (written != low_bits(e.bytes))
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

}  // namespace roofgen::sim
