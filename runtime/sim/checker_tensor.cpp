// The checker's part in tensor memory (tcgen05).
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/checker.h"

namespace roofgen::sim {

/// The tensor core goes on after what the issuing warp knows. Its work for another thread has another stamp.
void Checker::start_core(const Site& site, uint32_t lane, int rank) {
  const uint32_t issuer = issuer_of(site, rank);
  if (tensor_.changes(issuer, lane)) shadow_.advance();
  shadow_.start_core(tensor_.core(), issuing(rank).shadow_, site.warp);
  tensor_.issued(issuer, lane, shadow_.now());
  last_core_pc_ = site.pc;
}

void Checker::on(const TensorAlloc& e) {
  if (!e.frees) return tensor_.forget(e.first, e.columns);
  // Giving back is a write of all: later allocations may use the columns at once.
  TensorAccess all{e.site, 0, false, true, false, e.first, e.columns, {~0u, ~0u, ~0u, ~0u}};
  on(all);
  tensor_.forget(e.first, e.columns);
}

void Checker::on(const TensorAccess& e) {
  uint32_t known[kMaxWarps], acquired[kMaxWarps];
  if (e.core) start_core(e.site, e.lane, e.issuer);
  const bool frees = e.site.inst.sub == static_cast<uint8_t>(TensorOp::kDealloc);
  const uint32_t agent = e.core ? tensor_.core() : e.site.warp, issuer = issuer_of(e.site, e.issuer);
  const SharedShadow& of_issuer = e.issuer < 0 ? shadow_ : issuing(e.issuer).shadow_;
  for (uint32_t v = 0; v <= tensor_.core(); ++v) {
    acquired[v] = of_issuer.seen_of(shadow_, e.site.warp, v);
    // tcgen05.dealloc is no asynchronous operation: what is over and known needs no fence.
    known[v] = e.issuer < 0 ? shadow_.known_of(e.site.warp, v) : acquired[v];
    if (frees) acquired[v] = known[v];
  }
  const auto o = tensor_.access({agent, issuer, known, acquired}, e.first, e.columns, e.lanes, e.reads, e.writes,
                                e.lazily, shadow_.now(), e.site.pc);
  if (e.load) tensor_.note_load(e.site.warp, e.load, shadow_.now());
  if (e.load) shadow_.advance();
  if (o.problem != TensorShadow::Problem::kNone) report_tensor(e, o);
}

void Checker::report_tensor(const TensorAccess& e, const TensorShadow::Outcome& o) {
  using enum TensorShadow::Problem;
  const bool frees = e.site.inst.sub == static_cast<uint8_t>(TensorOp::kDealloc), by_core = o.other == n_warps_;
  const auto what = [&] {
    return fmt::format(
        "{} {} lanes {} to {} of column {} of tensor memory",
        e.core ? fmt::format("the tensor core, for warp {},", e.site.warp) : fmt::format("warp {}", e.site.warp),
        frees      ? "gives back"
        : e.writes ? "writes"
                   : "reads",
        16 * o.half, 16 * o.half + 15, o.column);
  };
  const auto other = [&] {
    return by_core ? fmt::format("the tensor core {}{}", o.wrote ? "writes" : "reads", at(o.pc))
                   : fmt::format("warp {} {}{}", o.other, o.wrote ? "stores" : "loads", at(o.pc));
  };
  const char* const kind = o.problem == kUnwritten                                         ? "uninitialised"
                           : o.problem == kNotBefore || o.problem == kNotAfter             ? "unfenced"
                           : o.problem == kPending || (by_core && o.problem == kUnordered) ? "async-pending"
                                                                                           : "race";
  issuing(e.issuer).report(e.site, kind, e.lane, [&] {
    switch (o.problem) {
      case kUnwritten: return what() + ", which nothing has written";
      case kPending:
        return fmt::format("{}, which {}: no tcgen05.wait::{} comes between", what(), other(), o.wrote ? "st" : "ld");
      case kNotBefore:
        return fmt::format("{}, which {}: no tcgen05.fence::before_thread_sync orders this for other threads", what(),
                           other());
      case kNotAfter:
        return fmt::format("{}, which {}: there is no tcgen05.fence::after_thread_sync after the relaxed wait", what(),
                           other());
      default: break;
    }
    return by_core
               ? fmt::format("{}, which {}: no wait at the mbarrier of a tcgen05.commit comes between", what(), other())
               : fmt::format("{}, which {}, and nothing orders them", what(), other());
  });
}

void Checker::on(const TensorWait& e) {
  if (e.loads) return tensor_.wait_loads(e.site.warp, e.load, shadow_.now());
  tensor_.wait_stores(e.site.warp, shadow_.now());
  shadow_.advance();
}

void Checker::on(const TensorFence& e) {
  const uint32_t warp = e.site.warp;
  if (!e.after) {
    // A relaxed arrival after it hands on what came before, as after a fence of memory.
    tensor_.fence_before(warp, shadow_.now());
    shadow_.fence(warp);
    return;
  }
  Checker* const peer = (rank_ ^ 1) < cluster_.size() ? cluster_[rank_ ^ 1] : this;
  for (Checker* c : {this, peer}) {
    uint32_t known[kMaxWarps] = {};
    for (uint32_t v = 0; v <= c->tensor_.core(); ++v)
      known[v] = c == this ? shadow_.known_of(warp, v) : shadow_.seen_of(c->shadow_, warp, v);
    c->tensor_.fence_after(c == this ? warp : kMaxWarps + warp, known);
  }
}

void Checker::on(const TensorRead& e) {
  start_core(e.site, e.lane, e.issuer);
  const uint32_t core = tensor_.core();
  Access access{e.site};
  access.bytes = 16;
  for (const uint32_t offset : e.offsets) {
    const Outcome o = shadow_.read_chunk(core, offset / 16);
    if (o.verdict == SharedShadow::Verdict::kReadAfterWrite)
      issuing(e.issuer).report(e.site, "race", e.lane, [&] {
        return fmt::format(
            "the tensor core, for warp {}, reads 16 bytes at {}{}, written by {}{}, and nothing orders them",
            e.site.warp, describe(state_, kSharedBase + offset),
            e.issuer < 0 ? "" : fmt::format(" of the CTA of rank {}", rank_),
            o.other < n_warps_ ? fmt::format("warp {} of that CTA", o.other) : "another CTA",
            o.other < n_warps_ ? at(log_.place_of_write(o.other, offset)) : "");
      });
    else if (!o.ok())
      issuing(e.issuer).report(access, e.lane, kSharedBase + offset, o);
    else
      check_proxy(e.site, e.lane, offset, "the tensor core");
  }
  for (const uint32_t offset : has_seen_exceptions(core) ? e.offsets : std::span<const uint32_t>())
    if (const auto other = unreleased(shadow_, core, offset, 16, false))
      report_unreleased(e.site, e.lane, offset, "multiplies", *other);
}

/// The arrival is not of the warp's time, but of the end of the work.
void Checker::on(const TensorCommit& e) {
  Checker& owner = issuing(e.rank);
  std::vector<SharedShadow::CoreWork> work{{&shadow_, tensor_.core(), tensor_.last_issued(e.site.warp, e.lane)}};
  if (e.peer >= 0) {
    const Checker& peer = issuing(e.peer);
    work.push_back({&peer.shadow_, peer.tensor_.core(), peer.tensor_.last_issued(kMaxWarps + e.site.warp, e.lane)});
  }
  e.rank < 0 ? order_.signal(e.barrier, e.site.warp) : owner.order_.signal_from(e.barrier, order_, e.site.warp);
  owner.shadow_.signal_core(e.barrier, shadow_, e.site.warp, work);
  require_stamps(e.lane);
}

}  // namespace roofgen::sim
