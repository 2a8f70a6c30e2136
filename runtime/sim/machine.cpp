#include "runtime/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/doubles.h"
#include "runtime/sim/lock_order.h"

namespace roofgen::sim {
namespace {

/// Instructions a warp runs before the next one's turn.
constexpr uint32_t kTurn = 256;
/// Backward branches after which lanes that wait get a turn, so that a spinning lane cannot starve
/// the lane it waits for.
constexpr uint32_t kSpinLimit = 512;
/// The same for a CTA that waits without any change: its states repeat sooner.
constexpr uint32_t kSpinLimitInVain = 16;
/// Looks at device memory after which other CTAs get a turn; fewer once the CTA has waited for others.
constexpr uint32_t kPatience = 1024, kPatienceOfWaiting = 32;
// Random schedules: turns of 1 to kTurn instructions, and rounds of turns, on average, until another CTA gets a turn.
constexpr uint32_t kTurnLengths = 9, kTurnsOfCta = 16;

}  // namespace

/// Lets the memory drop lines while no address into it is held.
void Machine::safe_point() {
  DeviceMemory& memory = state_.memory.all();
  if (!memory.over_cap()) return;
  memory.in_use().unlock_shared();
  memory.evict();
  memory.in_use().lock_shared();
}

bool Machine::go_on(std::vector<Finding>& findings) {
  emit(CtaTurn{ordinal_});
  const bool ended = take_turns(findings);
  if (ended) emit(CtaEnd{ordinal_});
  return ended;
}

void Machine::stop(std::vector<Finding>& findings, Finding finding) {
  checker_.hand_in(findings);
  add_finding(state_.go_on, findings, std::move(finding));
  ++state_.stopped;
}

bool Machine::take_turns(std::vector<Finding>& findings) {
  last_buffer_ = nullptr;
  waits_ = false;
  std::shared_lock lock(state_.memory.all().in_use());  // given up for moments in safe_point
  for (;;) {
    if (pause_ && (--pause_ == 0 || (pauses_before_ && state_.locks->all_have_come()))) end_pauses();
    bool ran = false, all_finished = true;
    const bool random = state_.schedule && !regular_;
    for (size_t i = turns_.size(); random && i > 1; --i) std::swap(turns_[i - 1], turns_[random_() % i]);
    for (uint32_t i = 0; i < n_warps_; ++i) {
      Warp& w = warps_[random ? turns_[i] : i];
      if (w.finished()) continue;
      all_finished = false;
      choose(w);
      if (!w.active) continue;
      ran = true;
      try {
        const uint32_t turn = random ? kTurn >> random_() % kTurnLengths : kTurn;
        state_.listener || doubles_ ? run_warp<true>(w, turn) : run_warp<false>(w, turn);
      } catch (Fault& fault) {
        stop(findings, finding(fault.kind, std::move(fault.message), w, fault.pc == ~0u ? w.pc : fault.pc, fault.lane));
        return true;
      }
      if (instructions_ > state_.max_instructions) {
        uint32_t lane = w.active ? first_lane(w.active) : 0;
        stop(findings, finding("instruction-limit",
                               fmt::format("the CTA ran {} warp-instructions without finishing: {}",
                                           state_.max_instructions, whereabouts()),
                               w, std::min<uint32_t>(w.pc, static_cast<uint32_t>(kernel_.code.size() - 1)), lane));
        return true;
      }
      if (w.follow) stop_following(w);
      safe_point();
    }
    if (all_finished) {
      ended_ = true;
      if (ends_well(findings)) checker_.hand_in(findings);
      return true;
    }
    if (!ran && pause_) {
      if (state_.launch.grid.count() > 1) return false;
      pause_ = 1;
      continue;
    }
    if (!ran && waits_for_cluster()) {
      waits_ = true;
      return false;
    }
    if (!ran && end_vain_waits()) continue;
    if (!ran) {
      stop(findings, deadlock());
      return true;
    }
    if (idle_looks_ >= kPatience) {
      idle_looks_ = kPatience - kPatienceOfWaiting;
      waits_ = true;
      return false;
    }
    if (shared_looks_ >= kPatience && polls_in_vain()) {
      stop(findings, vain_polling("the CTA polls shared memory that none of its threads changes: " + whereabouts()));
      return true;
    }
    if (random && random_() % kTurnsOfCta == 0) return false;
  }
}

void Machine::note_look(const Warp& w, bool shared, bool device) {
  look_pc_ = w.pc;
  look_warp_ = w.index;
  if (device || !cluster_.empty()) {
    ++idle_looks_;
    shared_looks_ = 0;
    polling_ = {};
  } else {
    shared_looks_ += shared;
  }
}

// ---- locks -------------------------------------------------------------------------------------------

namespace {

/// Rounds of turns that a pause lasts: time for the others to come to their locks, and to take them.
constexpr uint32_t kPauseBefore = 1024, kPauseAfter = 64;

}  // namespace

/// A word of shared or device memory; 0: of another CTA of the cluster.
uint64_t Machine::word_of(const Targets& t, uint32_t lane) const {
  if (t.device >> lane & 1) return t.address[lane];
  return t.is_of_cta(lane) ? uint64_t{1} << 63 | uint64_t{ordinal_} << 32 | t.offset[lane] : 0;
}

void Machine::note_change(const Warp& w, const Targets& t, uint32_t lane, uint64_t before, uint64_t after) {
  if (const uint64_t word = word_of(t, lane))
    took_ |= state_.locks->change(LockOrder::thread_of(ordinal_, w.index, lane), word, before, after);
}

void Machine::note_store(const Warp& w, const Targets& t, uint32_t mask, const std::byte (*data)[16], uint32_t bytes) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    uint64_t value = 0;
    std::memcpy(&value, data[l], bytes);
    if (const uint64_t word = word_of(t, l))
      state_.locks->give_back(LockOrder::thread_of(ordinal_, w.index, l), word, value);
  }
}

bool Machine::comes_to_lock(const Warp& w, const Inst& in, uint32_t mask) {
  const auto op = static_cast<AtomicOp>(in.sub);
  bool out = false;
  for (uint32_t m = op == AtomicOp::kCas || op == AtomicOp::kExch ? mask : 0; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    out |= state_.locks->comes(LockOrder::thread_of(ordinal_, w.index, l), op == AtomicOp::kExch,
                               in.size == 8 ? wide_row(w, in.b)[l] : row(w, in.b)[l]);
  }
  return out;
}

void Machine::pause(Warp& w) {
  w.parked.push_back({w.pc, w.active, kPaused});
  w.active = 0;
  pauses_before_ = !took_;
  pause_ = took_ ? kPauseAfter : kPauseBefore;
  took_ = false;
  choose(w);
}

void Machine::end_pauses() {
  pause_ = 0;
  for (Warp& w : warps_)
    for (Fragment& f : w.parked)
      if (f.barrier == kPaused) f.barrier = kReady;
}

/// Whether the CTA, which has looked at its shared memory for long, repeats itself.
bool Machine::polls_in_vain() {
  shared_looks_ = 0;
  regular_ = true;
  return polling_.repeats(state_.changes, [&] { return fingerprint(); });
}

/// Parks the running lanes and picks the ready lanes at the lowest pc, all that are there. Lanes
/// that wait for other lanes of the warp run again only when those come, or when nobody else can.
void Machine::choose(Warp& w) {
  if (w.parked.empty()) return;
  if (w.active) w.parked.push_back({w.pc, w.active, kReady});
  w.active = 0;
  w.merge_pc = ~0u;
  uint32_t lowest = ~0u, highest = 0, waiting = ~0u;
  bool at_barrier = false;
  for (const Fragment& f : w.parked) {
    at_barrier |= f.barrier >= 0;
    if (f.barrier == kWaitsForLanes) waiting = std::min(waiting, f.pc);
    if (f.barrier != kReady) continue;
    lowest = std::min(lowest, f.pc);
    highest = std::max(highest, f.pc);
  }
  w.pc = lowest != ~0u ? lowest : at_barrier ? ~0u : waiting;
  if (w.spins > (regular_ ? kSpinLimitInVain : kSpinLimit) && lowest != ~0u) {
    w.spins = 0;
    w.pc = highest;  // this once the lanes furthest ahead
  }
  for (const Fragment& f : w.parked)
    if (f.barrier < 0 && f.pc > w.pc) w.merge_pc = std::min(w.merge_pc, f.pc);
  size_t kept = 0;
  for (const Fragment& f : w.parked) {
    if (f.barrier < 0 && f.pc == w.pc)
      w.active |= f.mask;
    else
      w.parked[kept++] = f;
  }
  w.parked.resize(kept);
}

/// `kFollowed`: by a listener, or in double.
template <bool kFollowed>
void Machine::run_warp(Warp& w, uint32_t quota) {
  const Inst* code = kernel_.code.data();
  uint64_t* const issues = counter_.issues();
  const uint32_t* lists = kernel_.lists.data();
  uint32_t left = quota;
  for (; left && w.active; --left) {
    const Inst& in = code[w.pc];
    ++issues[w.pc];  // in place of an Issue event for the counts
    if ((in.flags | w.follow) & kFlagTracked) [[unlikely]]
      follow(w, in);
    uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
    if (in.flags & kFlagWatched && mask && in.kind != Kind::kWgmma) [[unlikely]]
      watch(w, in, mask);
    if constexpr (kFollowed) {
      if (state_.listener) state_.listener->on(Issue{site(w), w.active, mask});
      if (doubles_ && mask) doubles_->before(w, in, mask);
    }
    if (!mask) {
      ++w.pc;
    } else {
      switch (in.kind) {
        case Kind::kLane:
          if (in.cls == Class::kExp) emit(Exponentials{site(w), mask});
          in.lane(w.regs, in, lists, mask | w.dead);
          ++w.pc;
          break;
        case Kind::kMma:
          require_full(w, in, mask, "partial-warp", in.cls == Class::kShuffle ? "movmatrix" : "mma");
          in.lane(w.regs, in, lists, mask);
          ++w.pc;
          break;
        case Kind::kSparseMma: sparse_mma(w, in, mask), ++w.pc; break;
        case Kind::kTensorMap: change_tensor_map(w, in, mask), ++w.pc; break;
        case Kind::kBranch: branch_to(w, mask, in.target); break;
        case Kind::kBranchIndexed: branch_indexed(w, in, mask); break;
        case Kind::kExit: exit_lanes(w, mask); break;
        case Kind::kTrap:
          if (in.sub == kTrapNotModelled)
            throw Fault{"not-modelled", kernel_.not_modelled[static_cast<size_t>(in.imm)], first_lane(mask)};
          if (in.sub == kTrapNoFunction)
            throw Fault{"bad-branch", "a call through a pointer that is the address of no function which it could call",
                        first_lane(mask)};
          throw Fault{"trap", "the kernel executed a trap", first_lane(mask)};
        case Kind::kNop:
          if (in.sub == kNopFence || in.sub == kNopProxyFence)
            emit(Fence{site(w), in.sub == kNopProxyFence});
          else if (in.sub == kNopReturn)
            forget_local(w, mask, static_cast<uint32_t>(in.imm), in.target);
          else if (in.sub == kNopGridWait || in.sub == kNopGridTrigger)
            emit(GridControl{site(w), mask, in.sub == kNopGridWait});
          else if (in.sub)
            bulk_group(w, in, mask);
          ++w.pc;
          break;
        case Kind::kLoad: load(w, in, mask), ++w.pc; break;
        case Kind::kStore: store(w, in, mask), ++w.pc; break;
        case Kind::kLoadParam: load_param(w, in, mask), ++w.pc; break;
        case Kind::kAtomic:
          if (state_.locks && state_.locks->any_pauses() && comes_to_lock(w, in, mask)) [[unlikely]] {
            pause(w);
            break;
          }
          atomic(w, in, mask), ++w.pc;
          if (took_) [[unlikely]]
            pause(w);
          break;
        case Kind::kCpAsync:
          w.now = w.ran + (quota - left);
          cp_async(w, in, mask);
          ++w.pc;
          break;
        case Kind::kCpCommit: cp_commit(w, mask), ++w.pc; break;
        case Kind::kCpWait:
          w.now = w.ran + (quota - left);
          cp_wait(w, in, mask);
          ++w.pc;
          break;
        case Kind::kLdmatrix: ldmatrix(w, in, mask), ++w.pc; break;
        case Kind::kStmatrix: stmatrix(w, in, mask), ++w.pc; break;
        case Kind::kBarrier: barrier(w, in, mask); break;
        case Kind::kWarpBarrier:
          if (together(w, in, mask)) lane_barrier(w, in, mask), ++w.pc;
          break;
        case Kind::kShuffle:
          if (together(w, in, mask)) shuffle(w, in, mask), ++w.pc;
          break;
        case Kind::kVote:
          if (together(w, in, mask)) vote(w, in, mask), ++w.pc;
          break;
        case Kind::kMatch:
          if (together(w, in, mask)) match(w, in, mask), ++w.pc;
          break;
        case Kind::kRedux:
          if (together(w, in, mask)) redux(w, in, mask), ++w.pc;
          break;
        case Kind::kActiveMask:
          for (uint32_t m = mask; m; m &= m - 1) row(w, in.d)[first_lane(m)] = mask;
          ++w.pc;
          break;
        case Kind::kClock:  // time is the number of instructions the CTA ran
          for (uint32_t m = mask; m; m &= m - 1) {
            uint64_t now = instructions_ + (quota - left);
            now = in.imm & kClockIsTimer
                      ? state_.timer_begin_ns + static_cast<uint64_t>(state_.timer_ns * static_cast<double>(now))
                      : state_.clock_begin + now;
            if (in.imm & kClockHigh) now >>= 32;
            if (in.size == 8)
              wide_row(w, in.d)[first_lane(m)] = now;
            else
              row(w, in.d)[first_lane(m)] = static_cast<uint32_t>(now);
          }
          ++w.pc;
          break;
        case Kind::kMbarrier: mbarrier(w, in, mask); break;
        case Kind::kPrint: print(w, in, mask), ++w.pc; break;
        case Kind::kAssert: assertion(w, in, mask);
        case Kind::kWmmaLoad: wmma_load(w, in, mask), ++w.pc; break;
        case Kind::kWmmaStore: wmma_store(w, in, mask), ++w.pc; break;
        case Kind::kWgmma: wgmma(w, in, mask); break;
        case Kind::kWgmmaFence: require_full(w, in, mask, "partial-warp", "wgmma.fence"), ++w.fences, ++w.pc; break;
        case Kind::kWgmmaCommit:
          require_full(w, in, mask, "partial-warp", "wgmma.commit_group"), ++w.batches;
          emit(WgmmaCommit{site(w)}), ++w.pc;
          break;
        case Kind::kWgmmaWait:
          require_full(w, in, mask, "partial-warp", "wgmma.wait_group");
          wgmma_wait(w, in);
          ++w.pc;
          break;
        case Kind::kSetRegisters: set_registers(w, in, mask); break;
        case Kind::kTensor: tensor(w, in, mask); break;
        case Kind::kLaunchControl: launch_control(w, in, mask), ++w.pc; break;
        case Kind::kBulkCopy: bulk_copy(w, in, mask), ++w.pc; break;
        case Kind::kStoreAsync: store_async(w, in, mask), ++w.pc; break;
        case Kind::kTexture: texture(w, in, mask), ++w.pc; break;
        case Kind::kSurfaceStore: surface_store(w, in, mask), ++w.pc; break;
        case Kind::kClusterBarrier: cluster_barrier(w, in, mask); break;
        case Kind::kClusterRank: cluster_rank(w, in, mask), ++w.pc; break;
        case Kind::kIsSpace: is_space(w, in, mask), ++w.pc; break;
      }
    }
    if constexpr (kFollowed)
      if (doubles_ && mask) doubles_->after(w, in, mask);
    if (w.pc >= w.merge_pc) [[unlikely]]
      choose(w);
  }
  instructions_ += quota - left;
  w.ran += quota - left;
}

}  // namespace roofgen::sim
