// How a CTA begins, and what is said of one that went wrong.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

/// Cooperative groups rely on 288 (their memory.h). It lies behind the CTA's own.
constexpr uint32_t kReservedSharedBytes = 512;

uint32_t lanes_of(uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

}  // namespace

Machine::Machine(LaunchState& state, Counter& counter, const LaneTable& lanes)
    : state_(state), kernel_(state.kernel), counter_(counter), lanes_(lanes), executed_(counter.executed()) {
  threads_ = static_cast<uint32_t>(state.launch.block.count());
  n_warps_ = (threads_ + kWarpSize - 1) / kWarpSize;
  shared_bytes_ = kernel_.static_shared + state.launch.smem_bytes;
  if (std::any_of(kernel_.specials.begin(), kernel_.specials.end(),
                  [](const SpecialRow& s) { return s.special == Special::kReservedSmem; })) {
    reserved_at_ = (shared_bytes_ + 15) / 16 * 16;
    shared_bytes_ = reserved_at_ + kReservedSharedBytes;
  }
  shared_.resize(shared_bytes_);
  local_.resize(size_t{kernel_.local_bytes} * n_warps_ * kWarpSize);
  local_written_.resize(local_.size());
  row_buffer_.resize(kernel_.code.size());
  prepare_registers();
}

/// Constants and the specials that no CTA changes are written once; rows are cleared between CTAs only where findings
/// are tolerated, since the assignment checks make sure nobody sees an old value.
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
          case Special::kTidX: value = thread % block.x; break;
          case Special::kTidY: value = thread / block.x % block.y; break;
          case Special::kTidZ: value = thread / (block.x * block.y); break;
          case Special::kNtidX: value = block.x; break;
          case Special::kNtidY: value = block.y; break;
          case Special::kNtidZ: value = block.z; break;
          case Special::kNctaidX: value = grid.x; break;
          case Special::kNctaidY: value = grid.y; break;
          case Special::kNctaidZ: value = grid.z; break;
          case Special::kLaneid: value = l; break;
          case Special::kWarpid: value = i; break;
          case Special::kNwarpid: value = n_warps_; break;
          case Special::kNsmid: value = state_.sms; break;
          case Special::kLanemaskEq: value = 1u << l; break;
          case Special::kLanemaskLe: value = lanes_of(l + 1); break;
          case Special::kLanemaskLt: value = lanes_of(l); break;
          case Special::kLanemaskGe: value = ~lanes_of(l); break;
          case Special::kLanemaskGt: value = ~lanes_of(l + 1); break;
          case Special::kDynamicSmem: value = state_.launch.smem_bytes; break;
          case Special::kTotalSmem: value = kernel_.static_shared + state_.launch.smem_bytes; break;
          case Special::kReservedSmem: value = static_cast<uint32_t>(kSharedBase) + reserved_at_; break;
          case Special::kEnvreg1: value = static_cast<uint32_t>(state_.grid_workspace >> 32); break;
          case Special::kEnvreg2: value = static_cast<uint32_t>(state_.grid_workspace); break;
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
          case Special::kZero: break;
        }
        row(w, s.row)[l] = value;
      }
  }
}

uint64_t Machine::resident_bytes() const {
  return 4 * (register_memory_.size() + predicate_memory_.size()) + shared_.size() * 2 + local_.size() * 2 +
         device_.bytes() + shadow_.bytes();
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
    w.impatient = false;
    w.copies.clear();
    w.copies_begin = 0;
    for (const SpecialRow& s : kernel_.specials)
      if (s.special >= Special::kCtaidX && s.special <= Special::kCtaidZ)
        std::fill_n(row(w, s.row), kWarpSize, ids[static_cast<int>(s.special) - static_cast<int>(Special::kCtaidX)]);
      else if (s.special == Special::kSmid)
        std::fill_n(row(w, s.row), kWarpSize, static_cast<uint32_t>(cta % state_.sms));
    cluster_specials(w);
  }
}

Finding Machine::finding(const char* kind, std::string message, const Warp& w, uint32_t pc, uint32_t lane) const {
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
  return state_.tolerated->size() >= kMostTolerated ||
         std::any_of(state_.tolerated->begin(), state_.tolerated->end(),
                     [&](const Finding& f) { return f.ptx.line == line; });
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
  if (id == kAtClusterBarrier)
    return finding("deadlock", fmt::format("{} threads wait at the cluster's barrier, which never completes", waiting),
                   *at, pc, 0);
  if (sleeper)
    return finding("deadlock",
                   fmt::format("{} threads wait for phases of mbarriers that never complete{}", sleeping,
                               waiting ? fmt::format(", {} at other barriers", waiting) : ""),
                   *sleeper, sleeper_pc, sleeper_lane);
  const Barrier& b = barriers_[id];
  uint32_t arrived = 0;
  for (uint32_t m : b.arrived) arrived += static_cast<uint32_t>(__builtin_popcount(m));
  return finding("deadlock",
                 fmt::format("{} threads wait at barriers that never complete; barrier {} has {} of {} threads",
                             waiting, id, arrived, b.expected ? b.expected : threads_),
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
    if (!here.empty())
      out += fmt::format("{}{} at {}", out.empty() ? "" : "; ",
                         end == i + 1 ? fmt::format("warp {}", i) : fmt::format("warps {}-{}", i, end - 1), here);
    i = end;
  }
  return out;
}

}  // namespace roofgen::sim
