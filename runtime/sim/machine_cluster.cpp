// Clusters: CTAs that run together, with a barrier of their own and each other's shared memory. Races between CTAs are
// not looked for there: an access to another CTA's memory is checked for bounds and for having been written, and orders
// nothing.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

void Machine::cluster_specials(Warp& w) {
  const auto is_of_cluster = [](const SpecialRow& s) {
    return s.special >= Special::kClusterCtaidX && s.special <= Special::kNclusteridZ;
  };
  if (std::none_of(kernel_.specials.begin(), kernel_.specials.end(), is_of_cluster)) return;
  const Dim3 &grid = state_.launch.grid, &cluster = state_.launch.cluster;
  const uint64_t x = cta_ % grid.x, y = cta_ / grid.x % grid.y, z = cta_ / grid.x / grid.y;
  const uint32_t n = static_cast<uint32_t>(cluster.count());
  for (const SpecialRow& s : kernel_.specials) {
    uint64_t value = 0;
    switch (s.special) {
      case Special::kClusterCtaidX: value = x % cluster.x; break;
      case Special::kClusterCtaidY: value = y % cluster.y; break;
      case Special::kClusterCtaidZ: value = z % cluster.z; break;
      case Special::kClusterNctaidX: value = cluster.x; break;
      case Special::kClusterNctaidY: value = cluster.y; break;
      case Special::kClusterNctaidZ: value = cluster.z; break;
      case Special::kClusterCtarank: value = rank_; break;
      case Special::kClusterNctarank: value = n; break;
      case Special::kClusteridX: value = x / cluster.x; break;
      case Special::kClusteridY: value = y / cluster.y; break;
      case Special::kClusteridZ: value = z / cluster.z; break;
      case Special::kNclusteridX: value = grid.x / cluster.x; break;
      case Special::kNclusteridY: value = grid.y / cluster.y; break;
      case Special::kNclusteridZ: value = grid.z / cluster.z; break;
      default: continue;
    }
    for (uint32_t l = 0; l < kWarpSize; ++l) row(w, s.row)[l] = static_cast<uint32_t>(value);
  }
}

// ---- the barrier ---------------------------------------------------------------------------------------

void Machine::cluster_barrier(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t lane = first_lane(mask);
  if ((in.flags & kFlagAligned) && (mask | w.dead) != ~0u)
    throw Fault{
        "divergent-barrier",
        fmt::format("the cluster's barrier is reached by lanes {:#010x} of a warp whose lanes {:#010x} are elsewhere",
                    mask, ~(mask | w.dead)),
        lane};
  const bool waits = in.sub == 1;
  if (!waits) {
    if (w.cluster_arrived & mask)
      throw Fault{"bad-barrier", "a thread arrives at the cluster's barrier twice without waiting there",
                  first_lane(w.cluster_arrived & mask)};
    w.cluster_arrived |= mask;
    if (in.imm == 0) shadow_.arrive(kAtClusterBarrier, w.index, false);  // a relaxed arrival orders nothing
    ++w.pc;
    return try_release_cluster();
  }
  if (uint32_t early = mask & ~w.cluster_arrived)
    throw Fault{"bad-barrier", "a thread waits at the cluster's barrier without having arrived", first_lane(early)};
  used_atomics_ = true;  // what other CTAs wrote to device memory before it may be read now
  const uint32_t released = mask & w.cluster_released, blocked = mask & ~released;
  w.cluster_arrived &= ~released;
  w.cluster_released &= ~released;
  ++w.pc;
  if (!blocked) return;
  w.parked.push_back({w.pc, blocked, kAtClusterBarrier});
  w.active &= ~blocked;
  if (!w.active) choose(w);
}

/// Completes the phase when every thread of the cluster that has not ended has arrived.
void Machine::try_release_cluster() {
  Machine* const self = this;
  const std::span<Machine* const> all = cluster_.empty() ? std::span<Machine* const>(&self, 1) : cluster_;
  bool any = false;
  for (const Machine* m : all)
    for (const Warp& w : m->warps_) {
      if (((w.cluster_arrived & ~w.cluster_released) | w.dead) != ~0u) return;
      any |= (w.cluster_arrived & ~w.dead) != 0;
    }
  if (!any) return;
  for (Machine* m : all) {
    for (Warp& w : m->warps_) {
      w.cluster_released = w.cluster_arrived;
      for (Fragment& f : w.parked) {
        if (f.barrier != kAtClusterBarrier) continue;
        f.barrier = kReady;
        w.cluster_arrived &= ~f.mask;
        w.cluster_released &= ~f.mask;
      }
    }
    m->shadow_.release(kAtClusterBarrier, ~0u);
    m->device_.settle();
  }
}

bool Machine::waits_for_cluster() const {
  if (cluster_.empty()) return false;
  for (const Warp& w : warps_)
    for (const Fragment& f : w.parked)
      if (f.barrier == kAtClusterBarrier) return true;
  return false;
}

// ---- shared memory of the others -----------------------------------------------------------------------

/// mapa: an address in the memory of the CTA of a rank. getctarank: the rank whose memory an address is in.
void Machine::cluster_rank(Warp& w, const Inst& in, uint32_t mask) {
  const bool wide = in.size == 8, map = in.sub == 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const uint64_t address = wide ? wide_row(w, in.a)[l] : row(w, in.a)[l];
    const bool own = address < kSharedWindowEnd;
    if (!own && (address < kClusterBase || address >= kClusterWindowEnd))
      throw Fault{"out-of-bounds", fmt::format("{} is not in the shared memory of the cluster", describe(address)), l};
    uint64_t value = own ? rank_ : (address - kClusterBase) / kClusterCtaBytes;
    if (map) {
      const uint32_t rank = row(w, in.b)[l];
      if (rank >= state_.launch.cluster.count())
        throw Fault{"out-of-bounds",
                    fmt::format("rank {} in a cluster of {} CTAs", rank, state_.launch.cluster.count()), l};
      value = kClusterBase + rank * kClusterCtaBytes + address % kClusterCtaBytes;
    }
    if (map && wide)
      wide_row(w, in.d)[l] = value;
    else
      row(w, in.d)[l] = static_cast<uint32_t>(value);
  }
}

Machine& Machine::cta_in_cluster(uint64_t& address, uint32_t lane) {
  const uint64_t rank = (address - kClusterBase) / kClusterCtaBytes;
  address = (address - kClusterBase) % kClusterCtaBytes;
  if (rank == rank_) return *this;
  if (rank >= cluster_.size())
    throw Fault{"out-of-bounds",
                fmt::format("rank {} in a cluster of {} CTAs", rank, std::max<size_t>(cluster_.size(), 1)), lane};
  if (cluster_[rank]->ended_)
    throw Fault{"out-of-bounds", fmt::format("shared memory of the CTA of rank {}, which has ended", rank), lane};
  return *cluster_[rank];
}

uint32_t Machine::read_remote(Machine& cta, const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane,
                              std::byte* out) {
  const auto outcome = cta.shadow_.read_from_outside(offset, bytes);
  if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset, bytes, lane));
  std::copy_n(cta.shared_.data() + offset, bytes, out);
  return ~0u;
}

void Machine::write_remote(Machine& cta, const Warp& w, uint32_t offset, uint32_t bytes, uint32_t lane,
                           const std::byte* in) {
  const auto outcome = cta.shadow_.write_from_outside(offset, bytes);
  if (!outcome.ok() && notes_undefined()) undefined(shared_fault(outcome, w, offset, bytes, lane));
  std::copy_n(in, bytes, cta.shared_.data() + offset);
}

}  // namespace roofgen::sim
