// The checker's part in what orders accesses: asynchronous copies, products of warpgroups, barriers, fences, mbarriers.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/checker.h"
#include "runtime/sim/wgmma.h"

namespace roofgen::sim {

// ---- what barriers pair --------------------------------------------------------------------------------

/// A barrier of all threads pairs the same arrivals in each order: a thread arrives again only when it is over.
void Checker::begin_pairs() {
  if (!has_pairs_)
    has_pairs_ = std::ranges::any_of(state_.kernel.code, [](const Inst& in) {
      return in.kind == Kind::kMbarrier || in.kind == Kind::kBulkCopy || in.kind == Kind::kStoreAsync ||
             in.kind == Kind::kTensor || in.kind == Kind::kLaunchControl ||
             (in.kind == Kind::kBarrier && in.count == 2);
    });
  pairs_ = !*has_pairs_ ? nullptr : cluster_.empty() ? &own_pairs_ : &cluster_[0]->own_pairs_;
  if (pairs_ == &own_pairs_) pairs_->begin(n_warps_ * static_cast<uint32_t>(std::max<size_t>(cluster_.size(), 1)));
}

std::string Checker::name_of(uint32_t mbarrier) const {
  return fmt::format("the mbarrier at {}{}", describe(state_, kSharedBase + mbarrier),
                     rank_ ? fmt::format(" of the CTA of rank {}", rank_) : "");
}

void Checker::tell(const BarrierOrder::Alternative& a, const std::string& barrier) {
  const auto name = [&](uint32_t actor) {
    return fmt::format("warp {}{}", actor % n_warps_,
                       actor / n_warps_ == rank_ ? "" : fmt::format(" of the CTA of rank {}", actor / n_warps_));
  };
  const uint32_t pc = a.event.pc;
  const Site site{state_.kernel.code[pc], pc, a.event.actor % n_warps_};
  report(site, "barrier-order", 0, [&] {
    const std::string warp = name(a.event.actor);
    const std::string other = pairs_->is_actor(a.other.actor)
                                  ? fmt::format("the arrival of {}{}", name(a.other.actor), at(a.other.pc))
                                  : "the end of its copies";
    switch (a.what) {
      using enum BarrierOrder::Alternative::What;
      case kEarlyArrival:
        return fmt::format(
            "{} can come here before the last phase of {} is complete, and then counts in that phase: "
            "nothing orders it after {}, which that phase needs",
            warp, barrier, other);
      case kLateBytes:
        return fmt::format(
            "the phase of {} can be complete before {} expects these bytes: no arrival of the phase "
            "comes after",
            barrier, warp);
      case kLateWait:
        return fmt::format(
            "the next phase of {} can be complete before {} waits here, and the wait then lasts for the "
            "phase after that: no arrival of the next phase comes after this wait",
            barrier, warp);
      case kEarlyWait: break;
    }
    return fmt::format(
        "{} can pass here at another phase of {} of the same parity: nothing orders this wait after {}, "
        "which completed the phase before",
        warp, barrier, other);
  });
}

void Checker::pair_strong(const Access& e, uint64_t place) {
  if (e.op != Op::kWrite) pairs_->observe(place, actor(e.site.warp));
  if (e.op != Op::kRead) pairs_->signal(place, actor(e.site.warp));
}

// ---- the order of accesses -----------------------------------------------------------------------------

/// `e`: a strong access.
void Checker::hand_over(const Access& e, uint32_t offset) {
  const uint32_t warp = e.site.warp;
  const bool releases = e.releases;
  if (e.op != Op::kWrite && shadow_.completed(offset)) observe(offset, warp, e.acquires);
  if (e.op == Op::kRead || !(releases || shadow_.has_fenced(warp))) return;
  releases ? shadow_.signal(offset, warp, false) : shadow_.signal_fenced(offset, warp);
  order_.signal(offset, warp);
  shadow_.complete(offset);
  order_.complete(offset);
}

void Checker::hand_over_device(const Access& e, uint64_t address) {
  if (pairs_) pair_strong(e, uint64_t{1} << 63 | address / 4);
  const bool gives = e.op != Op::kRead && (e.releases || shadow_.has_fenced(e.site.warp));
  const uint32_t at = gives ? device_.make_place(address) : device_.place(address);
  if (at != DeviceShadow::kNowhere) hand_over(e, at);
}

void Checker::require_stamps(uint32_t lane) const {
  if (shadow_.stamps_exhausted())
    throw Fault{"instruction-limit", "more than 2^27 barriers and fences in one CTA", lane};
}

void Checker::on(const AsyncLand& e) {
  uint32_t lanes = e.lanes;
  releases_.touch(e.warp, e.lanes);
  for (const uint32_t at : e.offsets) {
    shadow_.async_land(e.from_outside ? shadow_.outside() : e.warp, at, e.bytes);
    log_.land(e.warp, lanes ? std::optional(first_lane(lanes)) : std::nullopt, at, e.bytes);
    lanes &= lanes - 1;
    if (!e.lanes) shadow_.set_by_copy(at);
  }
}

/// Bulk copies and products read through the asynchronous proxy.
void Checker::check_proxy(const Site& site, uint32_t lane, uint32_t offset, const char* reader) {
  const std::optional<uint32_t> writer = shadow_.writer_without_proxy_fence(offset);
  if (!writer) return;
  report(site, "race", lane, [&] {
    return fmt::format("{} reads 16 bytes at {} written by warp {}{} with no fence.proxy.async between", reader,
                       describe(state_, kSharedBase + offset), *writer, at(log_.place_of_write(*writer, offset)));
  });
}

void Checker::on(const WgmmaIssue& e) {
  const uint32_t engine = n_warps_ + e.first / kWarpgroup;
  Access access{e.site};
  access.bytes = 16;
  shadow_.start_engine(engine, e.first, kWarpgroup);
  for (size_t i = 0; (i = shadow_.engine_reads(engine, e.offsets, i)) < e.offsets.size(); ++i) {
    const uint32_t at = e.offsets[i];
    const Outcome o = shadow_.engine_outcome(engine, at / 16);
    if (!o.ok())
      report(access, 0, kSharedBase + at, o, log_.place_of_write(o.other, at));
    else
      check_proxy(e.site, 0, at, "wgmma");
  }
  for (const uint32_t at : has_seen_exceptions(engine) ? e.offsets : std::span<const uint32_t>())
    if (const auto other = unreleased(shadow_, engine, at, 16, false))
      report_unreleased(e.site, 0, at, "multiplies", *other);
  last_product_[e.first / kWarpgroup] = e.site.pc;
  if (pairs_) pairs_->meet(actor(e.first), kWarpgroup);
}

void Checker::on(const RegistersSet& e) {
  if (pairs_) pairs_->meet(actor(e.site.warp / kWarpgroup * kWarpgroup), kWarpgroup);
}

void Checker::on(const WgmmaCommit& e) {
  batches_[e.site.warp].push_back(shadow_.now());
  shadow_.advance();
  require_stamps(0);
}

void Checker::on(const WgmmaWait& e) {
  std::vector<uint32_t>& batches = batches_[e.site.warp];
  if (batches.size() <= e.pending) return;
  const size_t done = batches.size() - e.pending;
  shadow_.see(e.site.warp, n_warps_ + e.site.warp / kWarpgroup, batches[done - 1]);
  batches.erase(batches.begin(), batches.begin() + static_cast<ptrdiff_t>(done));
}

void Checker::on(const BulkSource& e) {
  for (const uint32_t at : e.offsets) {
    if (!e.begins) {
      if (--bulk_sources_[at / 16] == 0) bulk_sources_.erase(at / 16);
      shadow_.read_chunk(e.site.warp, at / 16);  // up to now
      continue;
    }
    ++bulk_sources_[at / 16];
    check_proxy(e.site, e.lane, at, bulk_name(e.site.inst));
  }
}

void Checker::on(const BarrierArrive& e) {
  const uint32_t warp = e.site.warp;
  if (pairs_ && e.id != kClusterBarrierId)
    if (const auto a = pairs_->arrive(key_of_number(e.id), actor(warp), e.site.pc))
      tell(*a, fmt::format("barrier {}", e.id));
  if (e.id == kClusterBarrierId) {
    in_cluster_[warp].arrived = cluster_phase_ + 1;
    for (auto& [barrier, init] : initialised_)
      if (init.warp == warp && !init.phase && (e.orders || init.stamp <= in_cluster_[warp].fenced))
        init.phase = cluster_phase_ + 1;
  }
  if (e.orders) {
    releases_.arrive_all(warp, shadow_.now());
    order_.arrive(e.id, warp), shadow_.arrive(e.id, warp, e.waits);
  } else if (in_cluster_[warp].released) {
    order_.arrive_fenced(warp), shadow_.arrive_fenced(e.id, warp, in_cluster_[warp].released);
  }
  require_stamps(first_lane(e.mask));
}

void Checker::on(const BarrierWait& e) {
  if (e.id == kClusterBarrierId) in_cluster_[e.site.warp].waited = in_cluster_[e.site.warp].arrived;
}

void Checker::on(const BarrierRelease& e) {
  if (pairs_ && e.id != kClusterBarrierId) {
    pairs_->complete(key_of_number(e.id));
    for (uint32_t m = e.warps; m; m &= m - 1) pairs_->go_on(key_of_number(e.id), actor(first_lane(m)));
  }
  // __syncthreads waits for the threads that have not exited: an exit counts as an arrival.
  for (uint32_t m = e.all ? exited_ : 0; m; m &= m - 1) shadow_.arrive(e.id, first_lane(m), true);
  shadow_.release(e.id, e.warps);
  order_.release(e.id, e.warps);
  if (e.warps == (n_warps_ < 32 ? (1u << n_warps_) - 1 : ~0u)) unwritten_reads_.clear();
  uint32_t waited = 0;
  for (uint32_t m = e.warps; m; m &= m - 1) waited = std::max(waited, in_cluster_[first_lane(m)].waited);
  for (uint32_t m = e.warps; m; m &= m - 1) {
    log_.synchronise(first_lane(m), ~0u);
    releases_.synchronise(first_lane(m));
    share_wait(first_lane(m), ~0u);
    if (e.id != kClusterBarrierId) in_cluster_[first_lane(m)].waited = waited;
    note_arrivals(first_lane(m));
  }
  cluster_phase_ += e.id == kClusterBarrierId;
  device_.settle();
}

void Checker::on(const Fence& e) {
  order_.fence(e);
  const Inst& in = e.site.inst;
  // It orders the accesses of one proxy after those of another, and passes no access on to another thread.
  if (e.proxy) return shadow_.proxy_fence(e.site.warp, static_cast<Space>(in.space));
  const bool releases = in.scope != MemoryScope::kCta && in.flags & kFlagRelease && in.imm != kFencesMbarriers;
  if (releases) in_cluster_[e.site.warp].released = shadow_.now();
  if (releases || in.imm == kFencesMbarriers) in_cluster_[e.site.warp].fenced = shadow_.now();
  if (in.flags & kFlagAcquire) shadow_.acquire_relied(e.site.warp);
  shadow_.fence(e.site.warp);
}

/// An mbarrier is initialised before others use it: by the clocks, or in a cluster by a fence and its barrier, which
/// may be relaxed.
void Checker::on(const MbarrierUse& e) {
  const uint32_t warp = e.site.warp;
  Checker& owner = e.rank < 0 ? *this : *cluster_[static_cast<uint32_t>(e.rank)];
  const uint64_t key = owner.key_of(e.barrier);
  std::optional<BarrierOrder::Alternative> a;
  if (e.what == MbarrierUse::What::kInitialises) pairs_->initialise(key);
  if (e.what == MbarrierUse::What::kExpects) a = pairs_->expect(key, actor(warp), e.site.pc);
  if (e.what == MbarrierUse::What::kCopies)
    a = e.site.inst.kind == Kind::kTensor ? pairs_->commit(key, actor(warp), e.lane, e.site.pc)
                                          : pairs_->arrive(key, actor(warp), e.site.pc, true);
  if (a) tell(*a, owner.name_of(e.barrier));
  if (e.what == MbarrierUse::What::kInitialises) {
    owner.initialised_[e.barrier] = {warp, shadow_.now(), e.site.pc};
    return;
  }
  const auto found = owner.initialised_.find(e.barrier);
  if (found == owner.initialised_.end()) return;
  const Initialised& init = found->second;
  if ((&owner == this && init.warp == warp) || (init.phase && init.phase <= in_cluster_[warp].waited) ||
      shadow_.seen_of(owner.shadow_, warp, init.warp) >= init.stamp)
    return;
  report(e.site, "race", e.lane, [&] {
    return fmt::format("warp {} uses the mbarrier at {}{}, which warp {} {} initialised{}, and nothing orders them",
                       warp, describe(state_, kSharedBase + e.barrier),
                       e.rank < 0 ? "" : fmt::format(" of the CTA of rank {}", e.rank), init.warp,
                       e.rank < 0 ? "has" : "there has", at(init.pc));
  });
}

void Checker::on(const PhaseArrive& e) {
  if (e.lanes) {
    const Checker& owner = e.rank < 0 ? *this : *cluster_[static_cast<uint32_t>(e.rank)];
    if (const auto a = pairs_->arrive(owner.key_of(e.barrier), actor(e.warp), e.pc)) tell(*a, owner.name_of(e.barrier));
  }
  if (!e.lanes && e.rank >= 0) {  // bytes of a copy here, at the mbarrier of the other CTA of a pair
    Checker& owner = *cluster_[static_cast<uint32_t>(e.rank)];
    const SharedShadow::CoreWork copy{&shadow_, e.from_outside ? shadow_.outside() : e.warp, shadow_.now()};
    owner.order_.signal_from(e.barrier, order_, e.warp);
    return owner.shadow_.signal_core(e.barrier, shadow_, e.warp, {&copy, 1});
  }
  if (e.from_outside) return shadow_.signal_outside(e.barrier);
  // A relaxed arrival hands on what came before a fence (PTX ISA, "Release and Acquire Patterns").
  const bool fenced = !e.releases && shadow_.has_fenced(e.warp);
  if (!e.releases && !fenced) return;
  if (e.lanes && !fenced) releases_.arrive(e.warp, e.lanes, shadow_.now(), log_);
  if (e.rank >= 0) {
    Checker& owner = *cluster_[static_cast<uint32_t>(e.rank)];
    owner.order_.signal_from(e.barrier, order_, e.warp);
    return owner.shadow_.signal_from(e.barrier, shadow_, e.warp, fenced);
  }
  order_.signal(e.barrier, e.warp);
  fenced ? shadow_.signal_fenced(e.barrier, e.warp) : shadow_.signal(e.barrier, e.warp);
  require_stamps(e.lane);
}

}  // namespace roofgen::sim
