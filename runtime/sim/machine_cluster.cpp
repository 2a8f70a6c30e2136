// Clusters: CTAs that run together, with a common barrier and access to each other's shared memory.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/machine.h"

namespace roofgen::sim {

// ---- the barrier ---------------------------------------------------------------------------------------

void Machine::cluster_barrier(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t lane = first_lane(mask);
  if ((in.flags & kFlagAligned) && waits_at_join(w, mask)) return;
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
    emit(BarrierArrive{site(w), kAtClusterBarrier, mask, false, in.imm == 0});  // a relaxed arrival orders nothing
    ++w.pc;
    return try_release_cluster();
  }
  if (uint32_t early = mask & ~w.cluster_arrived)
    throw Fault{"bad-barrier", "a thread waits at the cluster's barrier without having arrived", first_lane(early)};
  emit(BarrierWait{site(w), kAtClusterBarrier, mask});
  const uint32_t released = mask & w.cluster_released, blocked = mask & ~released;
  w.cluster_arrived &= ~released;
  w.cluster_released &= ~released;
  ++w.pc;
  met_ |= released != 0;
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
  checker_.meet();
  for (Machine* m : all) {
    for (Warp& w : m->warps_) {
      w.cluster_released = w.cluster_arrived;
      for (Fragment& f : w.parked) {
        if (f.barrier != kAtClusterBarrier) continue;
        f.barrier = kReady;
        m->met_ = true;
        w.cluster_arrived &= ~f.mask;
        w.cluster_released &= ~f.mask;
      }
    }
    m->emit(BarrierRelease{kAtClusterBarrier, ~0u, true});
  }
}

bool Machine::waits_for_cluster() const {
  if (cluster_.empty()) return false;
  for (const Warp& w : warps_)
    for (const Fragment& f : w.parked)
      if (f.barrier == kAtClusterBarrier || f.barrier == kWaitsForPhase) return true;
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
      throw Fault{"out-of-bounds", fmt::format("{} is not in the shared memory of the cluster", text(address)), l};
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
  if (!met_)
    throw Fault{"race",
                fmt::format("shared memory of the CTA of rank {}, which may not have begun: no barrier of the cluster "
                            "comes before",
                            rank),
                lane};
  cluster_[rank]->met_ = true;
  return *cluster_[rank];
}

}  // namespace roofgen::sim
