// Barriers in shared memory (mbarrier). Their 64 bits are ordinary data: a store over them destroys the barrier.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kMostArrivals =
    (1u << 20) - 1;  ///< PTX ISA, "mbarrier": the largest count, and the range of the bytes

/// The state of an mbarrier. The hardware's layout is not documented; this one has a mark that distinguishes it from
/// other data.
struct Phase {
  uint32_t pending, expected;
  int32_t bytes;  ///< expected and not yet there
  bool odd;

  static constexpr uint64_t kMark = uint64_t{1} << 62;
  static Phase of(uint64_t word) {
    return {static_cast<uint32_t>(word & kMostArrivals), static_cast<uint32_t>(word >> 20 & kMostArrivals),
            static_cast<int32_t>(word >> 40 & 0x1fffff) - (1 << 20), (word >> 61 & 1) != 0};
  }
  uint64_t word() const {
    return pending | uint64_t{expected} << 20 | static_cast<uint64_t>(bytes + (1 << 20)) << 40 | uint64_t{odd} << 61 |
           kMark;
  }
};

}  // namespace

void Machine::mbarrier(Warp& w, const Inst& in, uint32_t mask) {
  const auto op = static_cast<MbarrierOp>(in.sub);
  if (op == MbarrierOp::kPending) {
    for (uint32_t m = mask; m; m &= m - 1)
      row(w, in.d)[first_lane(m)] = Phase::of(wide_row(w, in.c)[first_lane(m)]).pending;
    ++w.pc;
    return;
  }
  uint64_t address[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  uint64_t asked[kWarpSize];
  std::copy_n(address, kWarpSize, asked);
  uint32_t there = 0;
  uint64_t used = 0;
  // try_wait may end without success at any time (PTX ISA, mbarrier.try_wait): a kernel that waits once goes on.
  const bool may_fail = op == MbarrierOp::kTry && state_.vain_waits && !w.in_vain;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    check_alignment(address[l], 8, l);
    Machine& owner = barrier_cta(address[l], l, in.space != 0);
    const bool outside = &owner != this;
    const uint32_t at = owner.shared_offset(address[l], 8, l);
    const int rank = outside ? static_cast<int>(owner.rank_) : -1;
    const auto refuse = [&](std::string why) {
      return Fault{"bad-barrier", fmt::format("mbarrier at {}: {}", text(address[l]), why), l};
    };
    using enum MbarrierUse::What;
    const MbarrierUse::What what = op == MbarrierOp::kInit       ? kInitialises
                                   : op == MbarrierOp::kExpectTx ? kExpects
                                                                 : kOther;
    // The lanes of a warp mostly use one barrier, which is one use; bytes are expected by each.
    if (op != MbarrierOp::kInval && (what != kOther || address[l] != used))
      emit(MbarrierUse{site(w), l, at, what, rank});
    used = address[l];
    const auto arrives = [&] {
      uint32_t lanes = 0;
      for (uint32_t n = mask; n; n &= n - 1)
        if (asked[first_lane(n)] == asked[l]) lanes |= n & (0 - n);
      emit(PhaseArrive{w.index, l, at, false, rank, lanes, w.pc, (in.flags & kFlagRelease) != 0});
    };
    std::byte bytes[8];
    uint64_t word = 0;
    if (op != MbarrierOp::kInit) {
      if (outside &&
          (op == MbarrierOp::kTest || op == MbarrierOp::kTry || op == MbarrierOp::kInval || op == MbarrierOp::kCopies))
        throw refuse(fmt::format("it is of the CTA of rank {}, where only arrivals and bytes may be added", rank));
      read_shared(w, at, 8, l, bytes, owner);
      std::memcpy(&word, bytes, 8);
      if (!(word & Phase::kMark) || word >> 63) throw refuse("not initialised, or overwritten");
    }
    Phase p = Phase::of(word);
    const uint32_t n = op == MbarrierOp::kInit || op == MbarrierOp::kExpectTx || op == MbarrierOp::kCompleteTx ||
                               op == MbarrierOp::kArrive || op == MbarrierOp::kArriveDrop
                           ? row(w, in.b)[l]
                           : 0;
    const auto expect = [&](int64_t more) {
      if (p.bytes + more > int64_t{kMostArrivals} || p.bytes + more < -int64_t{kMostArrivals})
        throw refuse(fmt::format("{} pending bytes are over the limit of {}", p.bytes + more, kMostArrivals));
      p.bytes += static_cast<int32_t>(more);
    };
    const auto arrive = [&](uint32_t count) {
      if (count == 0 || count > p.pending)
        throw refuse(fmt::format("{} arrivals, but {} of {} are left in this phase", count, p.pending, p.expected));
      p.pending -= count;
      arrives();
    };
    // Completes the phase if no arrivals and no bytes are pending, and writes the state back.
    const auto settle = [&] {
      if (op != MbarrierOp::kInit && p.pending == 0 && p.bytes == 0) {
        p = {p.expected, p.expected, 0, !p.odd};
        emit(PhaseComplete{at, rank});
        owner.wake_phase_waiters();
        owner.vain_waits_ = 0;
      }
      word = p.word();
      std::memcpy(bytes, &word, 8);
      write_shared(w, at, 8, l, bytes, 0, owner);
    };
    switch (op) {
      case MbarrierOp::kInit:
        if (n == 0 || n > kMostArrivals)
          throw refuse(fmt::format("an arrival count of {}, expected 1 to {}", n, kMostArrivals));
        p = {n, n, 0, false};
        break;
      case MbarrierOp::kInval:
        word = 0;
        std::memcpy(bytes, &word, 8);
        write_shared(w, at, 8, l, bytes, 0xff, owner);
        continue;
      case MbarrierOp::kArrive:
      case MbarrierOp::kArriveDrop:
        wide_row(w, in.d)[l] = word;
        if (in.type == kMbarrierExpects) expect(n);
        if (op == MbarrierOp::kArriveDrop) p.expected -= std::min(p.expected, in.type == kMbarrierExpects ? 1u : n);
        arrive(in.type == kMbarrierExpects ? 1 : n);
        break;
      case MbarrierOp::kExpectTx: expect(n); break;
      case MbarrierOp::kCompleteTx: expect(-int64_t{n}); break;
      case MbarrierOp::kCopies:
        for (AsyncCopy& copy : w.copies) land(w, copy, copy.mask & 1u << l);
        if (in.type == kMbarrierNoIncrease)
          arrive(1);
        else
          arrives();
        break;
      case MbarrierOp::kTest:
      case MbarrierOp::kTry: {
        const bool named = in.type == kMbarrierParity ? row(w, in.c)[l] & 1 : Phase::of(wide_row(w, in.c)[l]).odd;
        // Where waits may fail, copies land late: not at a look at a phase that has ended without their bytes.
        const bool late = may_fail || (state_.vain_waits && p.odd != named);
        if (const uint32_t landed = bulk_copies_.empty() || late ? 0 : land_bulk(at)) {
          expect(-int64_t{landed});
          settle();
        }
        // In another order the wait may come before the phase ends, and end without success.
        if (p.odd != named && (!may_fail || checker_.wait_is_certain(at, w.index))) {
          there |= 1u << l;
          emit(PhasePass{site(w), at, (in.flags & kFlagAcquire) != 0});
        }
        continue;
      }
      case MbarrierOp::kPending: break;
    }
    settle();
  }
  const bool in_vain = may_fail && there != mask;
  if (op == MbarrierOp::kTry) w.in_vain = in_vain;
  if (op == MbarrierOp::kTry && there != mask && !w.impatient && !in_vain) {
    // The lanes sleep until some phase completes, and look again.
    w.parked.push_back({w.pc, w.active, kWaitsForPhase});
    w.active = 0;
    return choose(w);
  }
  w.impatient = false;
  if (op == MbarrierOp::kTest || op == MbarrierOp::kTry) set_pred(w, in.e, there, mask);
  ++w.pc;
}

/// An arrival at the mbarrier of a CTA that no thread makes: the end of work of the tensor core.
void Machine::arrive_for_core(const Warp& w, uint32_t at, uint32_t lane, Machine& owner) {
  const auto refuse = [&](std::string why) {
    return Fault{"bad-barrier", fmt::format("tcgen05.commit to the mbarrier at {}: {}", text(kSharedBase + at), why),
                 lane};
  };
  std::byte bytes[8];
  uint64_t word = 0;
  read_shared(w, at, 8, lane, bytes, owner);
  std::memcpy(&word, bytes, 8);
  if (!(word & Phase::kMark) || word >> 63) throw refuse("not initialised, or overwritten");
  Phase p = Phase::of(word);
  if (p.pending == 0) throw refuse(fmt::format("all {} arrivals of this phase are there", p.expected));
  if (--p.pending == 0 && p.bytes == 0) {
    p = {p.expected, p.expected, 0, !p.odd};
    emit(PhaseComplete{at, &owner == this ? -1 : static_cast<int>(owner.rank_)});
    owner.wake_phase_waiters();
    owner.vain_waits_ = 0;
  }
  word = p.word();
  std::memcpy(bytes, &word, 8);
  write_shared(w, at, 8, lane, bytes, 0, owner);
}

/// "phase 1 of the mbarrier at shared memory address 0x400 (1 of 2 arrivals and 512 bytes are missing)"
std::string Machine::phase_text(const Warp& w, const Fragment& f) const {
  const Inst& in = kernel_.code[f.pc];
  const uint32_t l = first_lane(f.mask);
  uint64_t address[kWarpSize], word = 0;
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, address);
  std::memcpy(&word, shared_.data() + shared_offset(address[l], 8, l), 8);
  const Phase p = Phase::of(word);
  const std::string bytes = p.bytes < 0
                                ? fmt::format("are missing, and {} bytes more than expected arrived", -int64_t{p.bytes})
                                : fmt::format("and {} bytes are missing", p.bytes);
  return fmt::format(
      "{} of the mbarrier at {} ({} of {} arrivals {})",
      in.type == kMbarrierParity ? fmt::format("the phase of parity {}", row(w, in.c)[l] & 1) : "a phase",
      text(address[l]), p.pending, p.expected, bytes);
}

/// True: at least one lane was waiting.
bool Machine::wake_phase_waiters() {
  bool any = false;
  for (Warp& w : warps_)
    for (Fragment& f : w.parked)
      if (f.barrier == kWaitsForPhase) f.barrier = kReady, any = true;
  return any;
}

/// No warp can run and some wait for phases: these waits end without success, as the time limit of try_wait allows, and
/// their lanes may do other work.
bool Machine::end_vain_waits() {
  constexpr uint32_t kMostVainWaits = 1000;
  if (++vain_waits_ > kMostVainWaits || !wake_phase_waiters()) return false;
  for (Warp& w : warps_) w.impatient = true;
  return true;
}

}  // namespace roofgen::sim
