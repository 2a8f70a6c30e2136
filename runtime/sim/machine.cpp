#include "runtime/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace roofgen::sim {
namespace {

/// Instructions a warp runs before the next one's turn.
constexpr uint32_t kTurn = 256;
/// Backward branches after which lanes that wait get a turn, so that a spinning lane cannot starve
/// the lane it waits for.
constexpr uint32_t kSpinLimit = 512;
/// Looks at device memory after which other CTAs get a turn.
constexpr uint32_t kPatience = 1024;
/// Cooperative groups rely on 288 (their memory.h). It lies behind the CTA's own.
constexpr uint32_t kReservedSharedBytes = 512;

uint32_t lanes_of(uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

}  // namespace

Machine::Machine(LaunchState& state, Counter& counter, const LaneTable& lanes)
    : state_(state), kernel_(state.kernel), counter_(counter), lanes_(lanes), executed_(counter.executed()) {
  threads_ = static_cast<uint32_t>(state.launch.block.count());
  n_warps_ = (threads_ + kWarpSize - 1) / kWarpSize;
  shared_bytes_ = kernel_.static_shared + state.launch.smem_bytes;
  if (std::any_of(kernel_.specials.begin(), kernel_.specials.end(), [](const SpecialRow& s) { return s.special == Special::kReservedSmem; })) {
    reserved_at_ = (shared_bytes_ + 15) / 16 * 16;
    shared_bytes_ = reserved_at_ + kReservedSharedBytes;
  }
  shared_.resize(shared_bytes_);
  local_.resize(size_t{kernel_.local_bytes} * n_warps_ * kWarpSize);
  local_written_.resize(local_.size());
  row_buffer_.resize(kernel_.code.size());
  prepare_registers();
}

/// Constants and the specials that no CTA changes are written once; rows are cleared between CTAs only where findings are
/// tolerated, since the assignment checks make sure nobody sees an old value.
void Machine::prepare_registers() {
  register_memory_.assign(size_t{kernel_.rows} * kWarpSize * n_warps_ + 16, 0);
  predicate_memory_.assign(size_t{kernel_.preds} * n_warps_, 0);
  auto start = (reinterpret_cast<uintptr_t>(register_memory_.data()) + 63) & ~uintptr_t{63};
  const Dim3& block = state_.launch.block;
  const Dim3& grid = state_.launch.grid;
  warps_.resize(n_warps_);
  for (uint32_t i = 0; i < n_warps_; ++i) {
    Warp& w = warps_[i];
    w.index = i;
    w.regs.rows = reinterpret_cast<uint32_t*>(start) + size_t{i} * kernel_.rows * kWarpSize;
    w.regs.preds = predicate_memory_.data() + size_t{i} * kernel_.preds;
    w.regs.preds[0] = ~0u;
    for (const ConstantRow& c : kernel_.constants)
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        if (c.wide)
          wide_row(w, c.row)[l] = c.value;
        else
          row(w, c.row)[l] = static_cast<uint32_t>(c.value);
      }
    for (const SpecialRow& s : kernel_.specials)
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        uint32_t thread = i * kWarpSize + l, value = 0;
        switch (s.special) {
          case Special::kTidX:
            value = thread % block.x;
            break;
          case Special::kTidY:
            value = thread / block.x % block.y;
            break;
          case Special::kTidZ:
            value = thread / (block.x * block.y);
            break;
          case Special::kNtidX:
            value = block.x;
            break;
          case Special::kNtidY:
            value = block.y;
            break;
          case Special::kNtidZ:
            value = block.z;
            break;
          case Special::kNctaidX:
            value = grid.x;
            break;
          case Special::kNctaidY:
            value = grid.y;
            break;
          case Special::kNctaidZ:
            value = grid.z;
            break;
          case Special::kLaneid:
            value = l;
            break;
          case Special::kWarpid:
            value = i;
            break;
          case Special::kNwarpid:
            value = n_warps_;
            break;
          case Special::kNsmid:
            value = state_.sms;
            break;
          case Special::kLanemaskEq:
            value = 1u << l;
            break;
          case Special::kLanemaskLe:
            value = lanes_of(l + 1);
            break;
          case Special::kLanemaskLt:
            value = lanes_of(l);
            break;
          case Special::kLanemaskGe:
            value = ~lanes_of(l);
            break;
          case Special::kLanemaskGt:
            value = ~lanes_of(l + 1);
            break;
          case Special::kDynamicSmem:
            value = state_.launch.smem_bytes;
            break;
          case Special::kTotalSmem:
            value = kernel_.static_shared + state_.launch.smem_bytes;
            break;
          case Special::kReservedSmem:
            value = static_cast<uint32_t>(kSharedBase) + reserved_at_;
            break;
          case Special::kEnvreg1:
            value = static_cast<uint32_t>(state_.grid_workspace >> 32);
            break;
          case Special::kEnvreg2:
            value = static_cast<uint32_t>(state_.grid_workspace);
            break;
          case Special::kClusterCtaidX:
          case Special::kClusterCtaidY:
          case Special::kClusterCtaidZ:
          case Special::kClusterNctaidX:
          case Special::kClusterNctaidY:
          case Special::kClusterNctaidZ:
          case Special::kClusterCtarank:
          case Special::kClusterNctarank:
          case Special::kClusteridX:
          case Special::kClusteridY:
          case Special::kClusteridZ:
          case Special::kNclusteridX:
          case Special::kNclusteridY:
          case Special::kNclusteridZ:
          case Special::kSmid:
          case Special::kGridid:
          case Special::kCtaidX:
          case Special::kCtaidY:
          case Special::kCtaidZ:
          case Special::kZero:
            break;
        }
        row(w, s.row)[l] = value;
      }
  }
}

uint64_t Machine::resident_bytes() const {
  return 4 * (register_memory_.size() + predicate_memory_.size()) + shared_.size() * 2 + local_.size() * 2 + device_.bytes();
}

void Machine::begin_cta(uint64_t cta, uint32_t ordinal) {
  cta_ = cta;
  writer_ = state_.first_writer + ordinal;
  instructions_ = 0;
  used_atomics_ = saw_others_ = false;
  idle_looks_ = vain_waits_ = 0;
  ended_ = false;
  bulk_copies_.clear();
  last_buffer_ = nullptr;
  shadow_.reset(shared_bytes_, n_warps_);
  device_.reset(n_warps_);
  std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
  // The reserved part is zero at first: nobody initialises the barriers that cooperative groups have there.
  if (shared_bytes_ > kernel_.static_shared + state_.launch.smem_bytes) {
    std::fill(shared_.begin() + reserved_at_, shared_.end(), std::byte{0});
    for (uint32_t at = reserved_at_; at < shared_bytes_; at += 16) shadow_.write_from_outside(at, 16);
  }
  // What was there before would depend on which CTA this machine ran last.
  std::fill(local_.begin(), local_.end(), std::byte{0xff});
  std::fill(local_written_.begin(), local_written_.end(), uint8_t{0});
  if (state_.tolerated && kernel_.tracked_ids) prepare_registers();
  for (Barrier& b : barriers_)
    if (b.in_use) b = Barrier{};
  const Dim3& grid = state_.launch.grid;
  const uint32_t ids[3] = {static_cast<uint32_t>(cta % grid.x), static_cast<uint32_t>(cta / grid.x % grid.y),
                           static_cast<uint32_t>(cta / grid.x / grid.y)};
  for (Warp& w : warps_) {
    w.pc = 0;
    w.dead = ~lanes_of(threads_ - w.index * kWarpSize);
    w.active = ~w.dead;
    w.merge_pc = ~0u;
    w.spins = 0;
    w.parked.clear();
    w.assigned.assign(kernel_.tracked_ids, 0);
    w.holes.clear();
    std::fill(std::begin(w.committed), std::end(w.committed), 0u);
    w.cluster_arrived = w.cluster_released = 0;
    w.ran = w.now = 0;
    w.impatient = w.fenced = false;
    w.copies.clear();
    w.copies_begin = 0;
    for (const SpecialRow& s : kernel_.specials)
      if (s.special >= Special::kCtaidX && s.special <= Special::kCtaidZ)
        std::fill_n(row(w, s.row), kWarpSize,
                    ids[static_cast<int>(s.special) - static_cast<int>(Special::kCtaidX)]);
      else if (s.special == Special::kSmid)
        std::fill_n(row(w, s.row), kWarpSize, static_cast<uint32_t>(cta % state_.sms));
    cluster_specials(w);
  }
}

Finding Machine::finding(const char* kind, std::string message, const Warp& w, uint32_t pc,
                         uint32_t lane) const {
  Finding f;
  f.kind = kind;
  f.message = std::move(message);
  f.kernel = kernel_.name;
  f.ptx = {kernel_.file, static_cast<int>(kernel_.code[pc].line), 0};
  f.source = kernel_.sources[pc];
  f.cta = cta_;
  f.thread = w.index * kWarpSize + lane;
  return f;
}

bool Machine::is_noted() const {
  const int line = static_cast<int>(kernel_.code[running_->pc].line);
  return state_.tolerated->size() >= kMostTolerated || std::any_of(state_.tolerated->begin(), state_.tolerated->end(), [&](const Finding& f) { return f.ptx.line == line; });
}

void Machine::undefined(Fault fault) {
  if (!state_.tolerated) throw fault;
  state_.tolerated->push_back(finding(fault.kind, std::move(fault.message), *running_, running_->pc, fault.lane));
}

Finding Machine::deadlock() const {
  uint32_t waiting = 0, pc = 0, id = 0;
  const Warp* at = nullptr;
  uint32_t sleeping = 0, sleeper_pc = 0, sleeper_lane = 0;
  const Warp* sleeper = nullptr;
  for (const Warp& w : warps_)
    for (const Fragment& f : w.parked) {
      if (f.barrier == kWaitsForPhase) {
        sleeping += static_cast<uint32_t>(__builtin_popcount(f.mask));
        if (!sleeper) sleeper = &w, sleeper_pc = f.pc, sleeper_lane = static_cast<uint32_t>(__builtin_ctz(f.mask));
      }
      if (f.barrier < 0 || f.barrier == kWaitsForPhase) continue;
      waiting += static_cast<uint32_t>(__builtin_popcount(f.mask));
      if (!at) at = &w, pc = f.pc - 1, id = static_cast<uint32_t>(f.barrier);
    }
  if (id == kAtClusterBarrier) return finding("deadlock", fmt::format("{} threads wait at the cluster's barrier, which never completes", waiting), *at, pc, 0);
  if (sleeper)
    return finding("deadlock", fmt::format("{} threads wait for phases of mbarriers that never complete{}", sleeping, waiting ? fmt::format(", {} at other barriers", waiting) : ""), *sleeper, sleeper_pc, sleeper_lane);
  const Barrier& b = barriers_[id];
  uint32_t arrived = 0;
  for (uint32_t m : b.arrived) arrived += static_cast<uint32_t>(__builtin_popcount(m));
  return finding(
      "deadlock",
      fmt::format("{} threads wait at barriers that never complete; barrier {} has {} of {} threads", waiting,
                  id, arrived, b.expected ? b.expected : threads_),
      *at, pc, 0);
}

/// "warps 0-2 at k.cu:7; warp 3 at ...": those that have not finished, where their first lanes are.
std::string Machine::whereabouts() const {
  std::string out;
  for (uint32_t i = 0; i < warps_.size();) {
    const auto place = [&](const Warp& w) -> std::string {
      if (w.finished()) return "";
      uint32_t pc = w.pc;
      for (const Fragment& f : w.parked)
        if (!w.active || f.pc < pc) pc = f.pc;
      pc = std::min<uint32_t>(pc, static_cast<uint32_t>(kernel_.code.size() - 1));
      const Where& at = kernel_.sources[pc];
      return at.line > 0 ? fmt::format("{}:{}", at.file, at.line) : fmt::format("PTX line {}", kernel_.code[pc].line);
    };
    const std::string here = place(warps_[i]);
    uint32_t end = i + 1;
    while (end < warps_.size() && place(warps_[end]) == here) ++end;
    if (!here.empty()) out += fmt::format("{}{} at {}", out.empty() ? "" : "; ", end == i + 1 ? fmt::format("warp {}", i) : fmt::format("warps {}-{}", i, end - 1), here);
    i = end;
  }
  return out;
}

/// Lets the memory drop lines while no address into it is held.
void Machine::safe_point() {
  DeviceMemory& memory = state_.memory.all();
  if (!memory.over_cap()) return;
  memory.in_use().unlock_shared();
  memory.evict();
  memory.in_use().lock_shared();
}

bool Machine::go_on(std::vector<Finding>& findings) {
  last_buffer_ = nullptr;
  std::shared_lock lock(state_.memory.all().in_use());  // given up for moments in safe_point
  for (;;) {
    bool ran = false, all_finished = true;
    for (Warp& w : warps_) {
      if (w.finished()) continue;
      all_finished = false;
      choose(w);
      if (!w.active) continue;
      ran = true;
      try {
        run_warp(w, kTurn);
      } catch (Fault& fault) {
        findings.push_back(finding(fault.kind, std::move(fault.message), w, w.pc, fault.lane));
        return true;
      }
      if (instructions_ > state_.max_instructions) {
        uint32_t lane = w.active ? static_cast<uint32_t>(__builtin_ctz(w.active)) : 0;
        findings.push_back(finding(
            "instruction-limit",
            fmt::format("the CTA ran {} warp-instructions without finishing: {}", state_.max_instructions, whereabouts()), w,
            std::min<uint32_t>(w.pc, static_cast<uint32_t>(kernel_.code.size() - 1)), lane));
        return true;
      }
      safe_point();
    }
    if (all_finished) return ended_ = true;
    if (!ran && end_vain_waits()) continue;
    if (!ran) {
      if (waits_for_cluster()) return false;
      findings.push_back(deadlock());
      return true;
    }
    if (idle_looks_ >= kPatience) {
      idle_looks_ = 0;
      return false;
    }
  }
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
  if (w.spins > kSpinLimit && lowest != ~0u) {
    w.spins = 0;
    w.pc = highest;  // this once the lanes furthest ahead
  } else {
    for (const Fragment& f : w.parked)
      if (f.barrier < 0 && f.pc > w.pc) w.merge_pc = std::min(w.merge_pc, f.pc);
  }
  size_t kept = 0;
  for (const Fragment& f : w.parked) {
    if (f.barrier < 0 && f.pc == w.pc)
      w.active |= f.mask;
    else
      w.parked[kept++] = f;
  }
  w.parked.resize(kept);
}

/// Uses of registers that no proof covers: a value that a lane never assigned must not decide where it goes, nor leave its registers.
/// What is computed of it is as good as unassigned, as compilers compute values that they then do not select.
void Machine::check_assigned(Warp& w, const Inst& in) {
  auto i = static_cast<uint32_t>(&in - kernel_.code.data());
  const TrackedUse* begin = kernel_.tracked.data() + kernel_.tracked_begin[i];
  const TrackedUse* end = kernel_.tracked.data() + kernel_.tracked_begin[i + 1];
  auto need = [&](const TrackedUse& use, uint32_t mask) {
    uint32_t missing = mask & ~w.assigned[use.id];
    if (missing && notes_undefined())
      undefined(Fault{"uninitialised", fmt::format("register {} is read before it is written", use.name),
                 static_cast<uint32_t>(__builtin_ctz(missing))});
  };
  for (const TrackedUse* t = begin; t != end; ++t)
    if (t->is_guard) need(*t, w.active);
  const uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
  uint32_t assigned[4] = {~0u, ~0u, ~0u, ~0u};
  for (const TrackedUse* t = begin; t != end; ++t) {
    if (t->is_def || t->is_guard) continue;
    if (in.kind == Kind::kLane)
      assigned[t->operand] &= w.assigned[t->id];
    else if (in.kind != Kind::kShuffle || t->operand != TrackedUse::kA)
      need(*t, mask);
  }
  if (in.kind == Kind::kShuffle) return;  // it says itself what each lane gets
  const uint32_t good = in.kind == Kind::kLane ? mask & assigned[TrackedUse::kOther] & made_of_assigned(w, in, assigned) : mask;
  for (const TrackedUse* t = begin; t != end; ++t)
    if (t->is_def) w.assigned[t->id] = (w.assigned[t->id] & ~mask) | good;
}

/// Lanes in which the result is made of sources that are assigned.
uint32_t Machine::made_of_assigned(const Warp& w, const Inst& in, const uint32_t* assigned) const {
  const uint32_t a = assigned[TrackedUse::kA], b = assigned[TrackedUse::kB], c = assigned[TrackedUse::kC];
  const uint32_t* p = w.regs.preds;
  switch (static_cast<MadeOf>(in.type)) {
    case MadeOf::kAll: break;
    case MadeOf::kSelected: return c & ((p[in.c] & a) | (~p[in.c] & b));
    case MadeOf::kAnd: return (a & b) | (a & ~p[in.a]) | (b & ~p[in.b]);
    case MadeOf::kOr: return (a & b) | (a & p[in.a]) | (b & p[in.b]);
    case MadeOf::kCombined: {
      const uint32_t value = p[in.c] ^ static_cast<uint32_t>(in.imm);
      const uint32_t decides = in.sub == 1 ? ~value : in.sub == 2 ? value : 0;
      return c & ((a & b) | decides);
    }
  }
  return a & b & c;
}

void Machine::run_warp(Warp& w, uint32_t quota) {
  const Inst* code = kernel_.code.data();
  const uint32_t* lists = kernel_.lists.data();
  uint32_t left = quota;
  running_ = &w;
  for (; left && w.active; --left) {
    const Inst& in = code[w.pc];
    ++executed_[w.pc];
    if (in.flags & kFlagTracked) [[unlikely]]
      check_assigned(w, in);
    uint32_t mask = w.active & (w.regs.preds[in.guard] ^ in.guard_flip);
    if (!mask) {
      ++w.pc;
    } else {
      switch (in.kind) {
        case Kind::kLane:
          if (in.cls == Class::kExp) counter_.exps(mask);
          in.lane(w.regs, in, lists, mask | w.dead);
          ++w.pc;
          break;
        case Kind::kMma:
          require_full(w, in, mask, "partial-warp", "mma");
          in.lane(w.regs, in, lists, mask);
          ++w.pc;
          break;
        case Kind::kBranch:
          branch_to(w, mask, in.target);
          break;
        case Kind::kBranchIndexed:
          branch_indexed(w, in, mask);
          break;
        case Kind::kExit:
          exit_lanes(w, mask);
          break;
        case Kind::kTrap:
          throw Fault{"trap", "the kernel executed a trap", static_cast<uint32_t>(__builtin_ctz(mask))};
        case Kind::kNop:
          if (in.sub == 1) w.fenced = true, used_atomics_ |= saw_others_;
          ++w.pc;
          break;
        case Kind::kLoad:
          load(w, in, mask);
          ++w.pc;
          break;
        case Kind::kStore:
          store(w, in, mask);
          ++w.pc;
          break;
        case Kind::kLoadParam:
          load_param(w, in, mask);
          ++w.pc;
          break;
        case Kind::kAtomic:
          atomic(w, in, mask);
          ++w.pc;
          break;
        case Kind::kCpAsync:
          w.now = w.ran + (quota - left);
          cp_async(w, in, mask);
          ++w.pc;
          break;
        case Kind::kCpCommit:
          for (uint32_t m = mask; m; m &= m - 1) ++w.committed[__builtin_ctz(m)];
          ++w.pc;
          break;
        case Kind::kCpWait:
          w.now = w.ran + (quota - left);
          cp_wait(w, in, mask);
          ++w.pc;
          break;
        case Kind::kLdmatrix:
          ldmatrix(w, in, mask);
          ++w.pc;
          break;
        case Kind::kStmatrix:
          stmatrix(w, in, mask);
          ++w.pc;
          break;
        case Kind::kBarrier:
          barrier(w, in, mask);
          break;
        case Kind::kWarpBarrier:
          if (together(w, in, mask)) ++w.pc;
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
          for (uint32_t m = mask; m; m &= m - 1) row(w, in.d)[__builtin_ctz(m)] = mask;
          ++w.pc;
          break;
        case Kind::kClock:  // time is the number of instructions the CTA ran
          for (uint32_t m = mask; m; m &= m - 1) {
            uint64_t now = instructions_ + (quota - left);
            now = in.imm & kClockIsTimer ? state_.timer_begin_ns + static_cast<uint64_t>(state_.timer_ns * static_cast<double>(now))
                                         : state_.clock_begin + now;
            if (in.imm & kClockHigh) now >>= 32;
            if (in.size == 8)
              wide_row(w, in.d)[__builtin_ctz(m)] = now;
            else
              row(w, in.d)[__builtin_ctz(m)] = static_cast<uint32_t>(now);
          }
          ++w.pc;
          break;
        case Kind::kMbarrier:
          mbarrier(w, in, mask);
          break;
        case Kind::kPrint:
          print(w, in, mask);
          ++w.pc;
          break;
        case Kind::kAssert:
          assertion(w, in, mask);
        case Kind::kWmmaLoad:
          wmma_load(w, in, mask);
          ++w.pc;
          break;
        case Kind::kWmmaStore:
          wmma_store(w, in, mask);
          ++w.pc;
          break;
        case Kind::kBulkCopy:
          bulk_copy(w, in, mask);
          ++w.pc;
          break;
        case Kind::kClusterBarrier:
          cluster_barrier(w, in, mask);
          break;
        case Kind::kClusterRank:
          cluster_rank(w, in, mask);
          ++w.pc;
          break;
        case Kind::kIsSpace:
          is_space(w, in, mask);
          ++w.pc;
          break;
      }
    }
    if (w.pc >= w.merge_pc) [[unlikely]]
      choose(w);
  }
  instructions_ += quota - left;
  w.ran += quota - left;
}

// ---- control flow --------------------------------------------------------------------------------------

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
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    if (index[lane] >= in.e)
      throw Fault{"bad-branch", fmt::format("brx.idx index {} is past its {} targets", index[lane], in.e),
                  lane};
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
  w.dead |= mask;
  w.active &= ~mask;
  ++w.pc;
  if (!w.active) choose(w);
  // Barriers that wait for every thread no longer wait for these.
  for (uint32_t id = 0; id < 16; ++id)
    if (barriers_[id].in_use) try_release(id);
  if (!cluster_.empty()) try_release_cluster();
}

void Machine::require_full(const Warp& w, const Inst& in, uint32_t mask, const char* kind,
                           const char* what) const {
  if (mask == ~0u) return;
  uint32_t missing = ~mask;
  throw Fault{
      kind,
      fmt::format("{} needs all 32 lanes of the warp, but only lanes {:#010x} execute it ({})", what, mask,
                  missing & ~w.dead ? "the warp has diverged" : "the others have exited or do not exist"),
      static_cast<uint32_t>(__builtin_ctz(missing & ~w.dead ? mask : missing))};
}

/// Is it the next thing that all other lanes do, to exit?
bool Machine::others_leave(const Warp& w) const {
  constexpr int kMostSteps = 8;
  for (const Fragment& f : w.parked) {
    if (f.barrier != kReady) return false;
    uint32_t pc = f.pc;
    bool leaves = false;
    for (int step = 0; step < kMostSteps && !leaves; ++step) {
      const Inst& in = kernel_.code[pc];
      if (in.guard) return false;
      if (in.kind == Kind::kExit) leaves = true;
      else if (in.kind == Kind::kBranch) pc = in.target;
      else return false;
    }
    if (!leaves) return false;
  }
  return !w.parked.empty();
}

/// Does every way on of all other lanes come to where these are? Compilers may lay out a join before the code that leads to it, and then
/// the lanes that have nothing to do there are first; hardware has them wait at the join.
bool Machine::others_come(const Warp& w) const {
  std::vector<bool> seen(kernel_.code.size());
  std::vector<uint32_t> ways;
  for (const Fragment& f : w.parked) {
    if (f.barrier != kReady && !(f.barrier == kWaitsForLanes && f.pc == w.pc)) return false;
    ways.push_back(f.pc);
  }
  while (!ways.empty()) {
    const uint32_t pc = ways.back();
    ways.pop_back();
    if (pc == w.pc || seen[pc]) continue;
    seen[pc] = true;
    const Inst& in = kernel_.code[pc];
    if (in.kind == Kind::kExit || in.kind == Kind::kBarrier || in.kind == Kind::kBranchIndexed) return false;
    if (in.kind == Kind::kBranch) ways.push_back(in.target);
    if (in.kind != Kind::kBranch || in.guard) ways.push_back(pc + 1);
  }
  return !w.parked.empty();
}

void Machine::barrier(Warp& w, const Inst& in, uint32_t mask) {
  auto lane = static_cast<uint32_t>(__builtin_ctz(mask));
  if ((in.flags & kFlagAligned) && (mask | w.dead) != ~0u && mask == w.active &&
      std::any_of(w.parked.begin(), w.parked.end(), [&](const Fragment& f) { return f.barrier == kReady && f.pc < w.pc; }))
    return choose(w);  // these lanes only had a turn because others spin behind them
  if ((in.flags & kFlagAligned) && (mask | w.dead) != ~0u && mask == w.active && (others_leave(w) || others_come(w))) {
    // A barrier is for threads that have not exited (CUDA C++ Programming Guide, independent thread scheduling).
    if (std::any_of(w.parked.begin(), w.parked.end(), [&](const Fragment& f) { return f.pc == w.pc; })) return choose(w);
    w.parked.push_back({w.pc, mask, kWaitsForLanes});
    w.active = 0;
    return choose(w);
  }
  if ((in.flags & kFlagAligned) && (mask | w.dead) != ~0u)
    throw Fault{"divergent-barrier",
                fmt::format("barrier reached by lanes {:#010x} of a warp whose lanes {:#010x} are elsewhere",
                            mask, ~(mask | w.dead)),
                lane};
  uint32_t id = row(w, in.a)[lane], expected = in.count == 2 ? row(w, in.b)[lane] : 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    auto l = static_cast<uint32_t>(__builtin_ctz(m));
    if (row(w, in.a)[l] != id || (in.count == 2 && row(w, in.b)[l] != expected))
      throw Fault{"divergent-barrier", "lanes of one warp name different barriers or thread counts", l};
  }
  if (id >= 16) throw Fault{"bad-barrier", fmt::format("barrier {} does not exist, there are 16", id), lane};
  if (in.count == 2 && (expected == 0 || expected % kWarpSize || expected > n_warps_ * kWarpSize))
    throw Fault{"bad-barrier",
                fmt::format("thread count {} is not a multiple of 32 up to the CTA's {}", expected,
                            n_warps_ * kWarpSize),
                lane};
  Barrier& b = barriers_[id];
  if (b.in_use && b.expected != expected)
    throw Fault{"bad-barrier",
                fmt::format("barrier {} is used with {} and with {} threads", id, b.expected, expected),
                lane};
  if (b.arrived[w.index] & mask)
    throw Fault{"bad-barrier", fmt::format("the warp arrives at barrier {} twice before it completes", id),
                lane};
  b.in_use = true;
  b.expected = expected;
  b.arrived[w.index] |= mask;
  auto op = static_cast<BarrierOp>(in.sub);
  shadow_.arrive(id, w.index, op != BarrierOp::kArrive);
  if (shadow_.stamps_exhausted())
    throw Fault{"instruction-limit", "more than 2^27 barriers in one CTA", lane};
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
    if (here) arrived += static_cast<uint32_t>(__builtin_popcount(here | w.dead));
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
  shadow_.release(id, waiters);
  b = Barrier{};
}

}  // namespace roofgen::sim
