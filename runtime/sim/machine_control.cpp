// Branches, exits, and the barriers of a CTA.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

void Machine::branch_to(Warp& w, uint32_t mask, uint32_t target) {
  uint32_t stay = w.active & ~mask;
  bool backward = target <= w.pc;
  if (!stay) {
    w.pc = target;
  } else {
    w.parked.push_back({target, mask, kReady});
    w.active = stay;
    ++w.pc;
  }
  if (w.parked.empty()) return;
  w.spins += backward;
  // Lanes to merge with may also lie behind; merge_pc names only those ahead.
  if (stay || backward) choose(w);
}

void Machine::branch_indexed(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t* index = row(w, in.a);
  uint32_t stay = w.active & ~mask;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = first_lane(m);
    if (index[lane] >= in.e)
      throw Fault{"bad-branch", fmt::format("brx.idx index {} is past its {} targets", index[lane], in.e), lane};
    uint32_t target = kernel_.lists[in.list + index[lane]];
    auto same = std::find_if(w.parked.begin(), w.parked.end(),
                             [&](const Fragment& f) { return f.barrier == kReady && f.pc == target; });
    if (same != w.parked.end())
      same->mask |= 1u << lane;
    else
      w.parked.push_back({target, 1u << lane, kReady});
  }
  w.active = stay;
  ++w.pc;
  ++w.spins;
  choose(w);
}

void Machine::exit_lanes(Warp& w, uint32_t mask) {
  emit(LanesExit{site(w), mask, w.dead | mask});
  w.dead |= mask;
  w.active &= ~mask;
  ++w.pc;
  if (!w.active) choose(w);
  // Barriers that wait for every thread no longer wait for these.
  for (uint32_t id = 0; id < 16; ++id)
    if (barriers_[id].in_use) try_release(id);
  if (!cluster_.empty()) try_release_cluster();
}

void Machine::require_full(const Warp& w, const Inst& in, uint32_t mask, const char* kind, const char* what) const {
  if (mask == ~0u) return;
  uint32_t missing = ~mask;
  throw Fault{kind,
              fmt::format("{} needs all 32 lanes of the warp, but only lanes {:#010x} execute it ({})", what, mask,
                          missing & ~w.dead ? "the warp has diverged" : "the others have exited or do not exist"),
              first_lane(missing & ~w.dead ? mask : missing)};
}

/// Whether all other lanes exit next.
bool Machine::others_leave(const Warp& w) const {
  constexpr int kMostSteps = 8;
  for (const Fragment& f : w.parked) {
    if (f.barrier != kReady && f.barrier != kPaused) return false;
    uint32_t pc = f.pc;
    bool leaves = false;
    for (int step = 0; step < kMostSteps && !leaves; ++step) {
      const Inst& in = kernel_.code[pc];
      if (in.guard) return false;
      if (in.kind == Kind::kExit)
        leaves = true;
      else if (in.kind == Kind::kBranch)
        pc = in.target;
      else
        return false;
    }
    if (!leaves) return false;
  }
  return !w.parked.empty();
}

/// Whether every path of all other lanes leads to this instruction, or some path. Compilers may lay out a join before
/// the code that leads to it; the lanes that skip this code then arrive first, and hardware lets them wait at the join.
Machine::Come Machine::others_come(const Warp& w) const {
  std::vector<bool> seen(kernel_.code.size());
  std::vector<uint32_t> ways;
  bool some = false, all = true;
  for (const Fragment& f : w.parked) {
    const bool goes_on = f.barrier == kReady || f.barrier == kPaused || f.barrier == kWaitsForPhase;
    if (!goes_on && !(f.barrier == kWaitsForLanes && f.pc == w.pc)) return Come::kNever;
    ways.push_back(f.pc);
  }
  while (!ways.empty()) {
    const uint32_t pc = ways.back();
    ways.pop_back();
    some |= pc == w.pc;
    if (pc == w.pc || seen[pc]) continue;
    seen[pc] = true;
    const Inst& in = kernel_.code[pc];
    if (in.kind == Kind::kExit || in.kind == Kind::kBarrier || in.kind == Kind::kBranchIndexed) {
      all = false;
      if (!in.guard) continue;
    }
    if (in.kind == Kind::kBranch) ways.push_back(in.target);
    if (in.kind != Kind::kBranch || in.guard) ways.push_back(pc + 1);
  }
  return !some || w.parked.empty() ? Come::kNever : all ? Come::kSurely : Come::kMaybe;
}

/// Whether the lanes at an aligned barrier let others of their warp run first, which come there or exit. If lanes exit
/// that may have come instead, the barrier was not for all (`hoped_at`).
bool Machine::waits_at_join(Warp& w, uint32_t mask) {
  if ((mask | w.dead) == ~0u || mask != w.active) return false;
  const auto any = [&](auto is) { return std::any_of(w.parked.begin(), w.parked.end(), is); };
  const bool only_overtook = any([&](const Fragment& f) { return f.barrier == kReady && f.pc < w.pc; });
  const Come come = only_overtook || others_leave(w) ? Come::kSurely : others_come(w);
  if (come == Come::kNever) return false;
  if (come == Come::kMaybe) w.hoped_at = w.pc, w.hoped_dead = w.dead;
  // A barrier is for threads that have not exited (CUDA C++ Programming Guide, independent thread scheduling).
  if (!only_overtook && !any([&](const Fragment& f) { return f.pc == w.pc; })) {
    w.parked.push_back({w.pc, mask, kWaitsForLanes});
    w.active = 0;
  }
  choose(w);
  return true;
}

void Machine::barrier(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t lane = first_lane(mask);
  if ((in.flags & kFlagAligned) && waits_at_join(w, mask)) return;
  if ((in.flags & kFlagAligned) && (mask | w.dead) != ~0u)
    throw Fault{"divergent-barrier",
                fmt::format("barrier reached by lanes {:#010x} of a warp whose lanes {:#010x} are elsewhere", mask,
                            ~(mask | w.dead)),
                lane};
  if (std::exchange(w.hoped_at, ~0u) == w.pc && w.dead != w.hoped_dead)
    throw Fault{"divergent-barrier",
                fmt::format("barrier reached by lanes {:#010x} of a warp whose lanes {:#010x} went on and exited", mask,
                            w.dead & ~w.hoped_dead),
                lane};
  uint32_t id = row(w, in.a)[lane], expected = in.count == 2 ? row(w, in.b)[lane] : 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (row(w, in.a)[l] != id || (in.count == 2 && row(w, in.b)[l] != expected))
      throw Fault{"divergent-barrier", "lanes of one warp name different barriers or thread counts", l};
  }
  if (id >= 16) throw Fault{"bad-barrier", fmt::format("barrier {} does not exist, there are 16", id), lane};
  if (in.count == 2 && (expected == 0 || expected % kWarpSize || expected > n_warps_ * kWarpSize))
    throw Fault{
        "bad-barrier",
        fmt::format("thread count {} is not a multiple of 32 up to the CTA's {}", expected, n_warps_ * kWarpSize),
        lane};
  Barrier& b = barriers_[id];
  if (b.in_use && b.expected != expected)
    throw Fault{"bad-barrier", fmt::format("barrier {} is used with {} and with {} threads", id, b.expected, expected),
                lane};
  const auto op = static_cast<BarrierOp>(in.sub);
  const bool again = b.arrived[w.index] & mask;
  if (again && (op == BarrierOp::kArrive || !expected || b.again[w.index] & mask))
    throw Fault{"bad-barrier", fmt::format("the warp arrives at barrier {} twice before it completes", id), lane};
  b.in_use = true;
  b.expected = expected;
  (again ? b.again : b.arrived)[w.index] |= mask;
  emit(BarrierArrive{site(w), id, mask, op != BarrierOp::kArrive, true});
  ++w.pc;
  if (op != BarrierOp::kArrive) {
    if (op != BarrierOp::kSync) {
      uint32_t values = (w.regs.preds[in.c] ^ static_cast<uint32_t>(in.imm)) & mask;
      b.votes += static_cast<uint32_t>(__builtin_popcount(values));
      b.votes_any |= values;
      if (values != mask) b.votes_all = 0;
      b.results.push_back({w.index, mask, w.pc - 1});
    }
    w.parked.push_back({w.pc, mask, static_cast<int>(id)});
    w.active &= ~mask;
    if (!w.active) choose(w);
  }
  try_release(id);
}

/// Releases barrier `id` when all it waits for have arrived: every thread that has not exited, or
/// the stated number of threads, counted in whole warps.
void Machine::try_release(uint32_t id) {
  Barrier& b = barriers_[id];
  uint32_t arrived = 0;
  bool all = true;
  for (const Warp& w : warps_) {
    uint32_t here = b.arrived[w.index];
    for (const uint32_t lanes : {here, b.again[w.index]})
      if (lanes) arrived += static_cast<uint32_t>(__builtin_popcount(lanes | w.dead));
    all &= (here | w.dead) == ~0u;
  }
  if (b.expected ? arrived < b.expected : !all) return;
  for (const Barrier::Result& r : b.results) {
    Warp& w = warps_[r.warp];
    const Inst& in = kernel_.code[r.inst];
    auto op = static_cast<BarrierOp>(in.sub);
    if (op == BarrierOp::kPopc) {
      for (uint32_t m = r.lanes; m; m &= m - 1) row(w, in.d)[__builtin_ctz(m)] = b.votes;
    } else {
      set_pred(w, in.d, op == BarrierOp::kAnd ? b.votes_all : b.votes_any ? ~0u : 0, r.lanes);
    }
  }
  uint32_t waiters = 0;
  for (Warp& w : warps_)
    for (Fragment& f : w.parked)
      if (f.barrier == static_cast<int>(id)) {
        f.barrier = kReady;
        waiters |= 1u << w.index;
      }
  emit(BarrierRelease{id, waiters, b.expected == 0});
  b = Barrier{};
}

}  // namespace roofgen::sim
