#include "runtime/sim/grid_order.h"

#include <algorithm>

namespace roofgen::sim {
namespace {

constexpr uint32_t kChildBits = 3, kChildren = 1u << kChildBits;

void raise(Row& row, const Row& to) {
  for (uint32_t w = 0; w < kMaxWarps; ++w) row[w] = std::max(row[w], to[w]);
}

}  // namespace

// ---- clocks --------------------------------------------------------------------------------------------

struct Clock::Inner {
  std::array<Node, kChildren> child;
};

const Row* Clock::of(uint32_t cta) const {
  if (!root_ || uint64_t{cta} >> (kChildBits * levels_)) return nullptr;
  const void* node = root_.get();
  for (uint32_t level = levels_; level && node; --level)
    node = static_cast<const Inner*>(node)->child[cta >> (kChildBits * (level - 1)) & (kChildren - 1)].get();
  return static_cast<const Row*>(node);
}

/// One of its arguments where that has all of the other.
Clock::Node Clock::joined(const Node& a, const Node& b, uint32_t level) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (level == 0) {
    const Row &x = *static_cast<const Row*>(a.get()), &y = *static_cast<const Row*>(b.get());
    Row row = x;
    raise(row, y);
    return row == x ? a : row == y ? b : std::make_shared<const Row>(row);
  }
  const Inner &x = *static_cast<const Inner*>(a.get()), &y = *static_cast<const Inner*>(b.get());
  Inner both;
  for (uint32_t i = 0; i < kChildren; ++i) both.child[i] = joined(x.child[i], y.child[i], level - 1);
  return both.child == x.child ? a : both.child == y.child ? b : std::make_shared<const Inner>(std::move(both));
}

void Clock::grow(uint32_t levels) {
  for (; levels_ < levels; ++levels_) {
    if (!root_) continue;
    Inner above;
    above.child[0] = root_;
    root_ = std::make_shared<const Inner>(std::move(above));
  }
}

void Clock::join(const Clock& other) {
  if (!other.root_) return;
  if (!root_) {
    *this = other;
    return;
  }
  grow(other.levels_);
  Clock same = other;
  same.grow(levels_);
  root_ = joined(root_, same.root_, levels_);
}

void Clock::add(uint32_t cta, const Row& row) {
  Clock one;
  while (uint64_t{cta} >> (kChildBits * one.levels_)) ++one.levels_;
  one.root_ = std::make_shared<const Row>(row);
  for (uint32_t level = 0; level < one.levels_; ++level) {
    Inner above;
    above.child[cta >> (kChildBits * level) & (kChildren - 1)] = std::move(one.root_);
    one.root_ = std::make_shared<const Inner>(std::move(above));
  }
  join(one);
}

void Past::join(const Past& other) {
  if (!other.any) return;
  others.join(other.others);
  raise(own, other.own);
  any = true;
}

Clock Past::of(uint32_t cta) const {
  Clock all = others;
  if (any) all.add(cta, own);
  return all;
}

// ---- races ---------------------------------------------------------------------------------------------

void CtaOrder::begin(GridOrder* grid, uint32_t cta, uint32_t cluster, uint32_t warps) {
  if (active_) {
    std::fill_n(warps_.begin(), n_warps_, Warp{});
    barriers_.fill({});
    phases_.clear();
  }
  active_ = false;
  grid_ = grid;
  cta_ = cta;
  cluster_ = cluster;
  n_warps_ = warps;
  if (!follows() || (cluster == cta && grid->cluster_.empty())) return;
  for (auto& of = grid->cluster_; of.size() <= cta;) of.push_back(static_cast<uint32_t>(of.size()));
  grid->cluster_[cta] = cluster;
}

/// Whether a scope includes the threads of another CTA.
bool CtaOrder::reaches(MemoryScope scope, uint32_t cta) const {
  const auto& of = grid_->cluster_;
  return scope >= (cta < of.size() && of[cta] == cluster_ ? MemoryScope::kCluster : MemoryScope::kGpu);
}

bool CtaOrder::is_before(const AccessRecord& r, uint32_t warp) const {
  if (!grid_->follows_) return r.cta == cta_;
  const uint32_t other = r.at >> 27, stamp = r.at & SharedShadow::kStampMask;
  if (r.cta == cta_) return other == warp || shadow_.has_seen(warp, other, stamp);
  const Row* row = active_ && r.cta != GridAccess::kSeveral ? warps_[warp].past.known.of(r.cta) : nullptr;
  return row && (*row)[other] >= stamp;
}

bool CtaOrder::read_only(uint32_t slot, LineBits bits) {
  if (!grid_) return false;
  grid_->read_only_[slot].add(bits);
  return wrote(slot, bits);
}

bool CtaOrder::wrote(uint32_t slot, LineBits bits) {
  if (!grid_) return false;
  AccessHistory& history = grid_->history_;
  history.unfold(slot);
  return history.find(slot, bits, [](const AccessRecord& r) { return writes(r.what); });
}

/// Without stamps, or in another CTA, any such fence counts.
const AccessRecord* CtaOrder::write_without_proxy_fence(uint32_t slot, LineBits bits) const {
  if (!grid_ || grid_->by_copy_.count(slot)) return nullptr;
  grid_->history_.unfold(slot);
  return grid_->history_.find(slot, bits, [&](const AccessRecord& r) {
    if (!writes(r.what)) return false;
    if (!grid_->follows_) return r.cta == cta_ && !shadow_.any_proxy_fence();
    return r.cta == cta_ ? !shadow_.proxied(r.at >> 27, r.at & SharedShadow::kStampMask)
                         : !shadow_.any_proxy_fence() && !grid_->proxy_fenced_;
  });
}

bool CtaOrder::was_read_only(uint32_t slot, LineBits bits) const {
  const auto read = grid_->read_only_.find(slot);
  return read != grid_->read_only_.end() && read->second.meets(bits);
}

const AccessRecord* CtaOrder::touch_others(uint32_t warp, uint32_t slot, LineBits bits, What what, MemoryScope scope,
                                           bool equal) {
  AccessHistory& history = grid_->history_;
  if (AccessHistory::kAll == bits && history.add_simply(slot, {cta_, at(warp), what, scope}, grid_->follows_))
    return nullptr;
  history.unfold(slot);
  // CTAs that store equal values do not race, and each may read what it stored.
  const auto stored = [&](uint32_t cta, LineBits part) {
    return history.find(slot, part, [&](const AccessRecord& r) {
      return r.what == What::kWrite && (r.cta == cta || r.cta == GridAccess::kSeveral) && !part.without(r.bits).any();
    });
  };
  // What a strong access has observed lies before all that the access lies before (8.9.5, causality order).
  bool observed = false;
  const AccessRecord* other = history.find(slot, bits, [&](const AccessRecord& r) {
    if (observed && r.what == What::kStrongWrite) return false;
    observed |= is_strong(r.what) && !bits.without(r.bits).any() && is_before(r, warp);
    if (r.cta == cta_ || !(writes(what) || writes(r.what)) || is_before(r, warp)) return false;
    if (is_strong(what) && is_strong(r.what)) return !reaches(scope, r.cta) || !reaches(r.scope, r.cta);
    if (equal && r.what == What::kWrite) return false;
    if (what == What::kRead && r.what == What::kWrite) return !stored(cta_, r.bits.common(bits));
    return !(equal && r.what == What::kRead && stored(r.cta, r.bits.common(bits)));
  });
  if (!other) note(warp, slot, bits, what, scope, equal);
  return other;
}

void CtaOrder::note(uint32_t warp, uint32_t slot, LineBits bits, What what, MemoryScope scope, bool equal) {
  if (!grid_) return;
  const AccessRecord r{{cta_, at(warp), what, scope}, bits};
  if (what == What::kRead && !grid_->follows_)
    grid_->history_.add_unordered_read(slot, r);
  else
    grid_->history_.add(slot, r, equal, [&](const AccessRecord& other) { return is_before(other, warp); });
}

// ---- strong accesses and fences ------------------------------------------------------------------------

void CtaOrder::Offer::join(const Offer& other) {
  known.join(other.known);
  for (uint32_t l = 0; l < 2; ++l) fenced[l].join(other.fenced[l]);
}

void CtaOrder::learn(uint32_t warp, uint32_t level, const Clock& clock) {
  Warp& w = warps_[warp];
  if (w.taken[level].is(clock)) return;
  w.taken[level] = clock;
  w.past.known.join(clock);
  if (const Row* own = clock.of(cta_)) shadow_.learn(warp, own->data());
}

void CtaOrder::take_pending(uint32_t warp, uint32_t level) {
  if (Clock& pending = warps_[warp].pending[level]; !pending.empty()) {
    learn(warp, level, pending);
    pending = {};
  }
}

/// What a strong write leaves for the readers of a level.
Clock CtaOrder::published(const Access& e, uint32_t level) const {
  const Offer& past = warps_[e.site.warp].past;
  if (e.site.inst.scope < (level == kCluster ? MemoryScope::kCluster : MemoryScope::kGpu)) return {};
  if (!e.releases) return past.fenced[level].of(cta_);
  Row own;
  shadow_.row_of(e.site.warp, own.data());
  Clock all = past.known;
  all.add(cta_, own);
  return all;
}

void CtaOrder::receive(uint64_t word, const Access& e) {
  const auto it = grid_->messages_.find(word);
  if (it == grid_->messages_.end()) return;
  for (uint32_t l = nearest(); l <= kAll; ++l) {
    const Clock& clock = it->second.at[l];
    const bool in_scope = e.site.inst.scope >= (l == kCluster ? MemoryScope::kCluster : MemoryScope::kGpu);
    if (clock.empty() || !in_scope || (l == kCluster && it->second.cluster != cluster_)) continue;
    active_ = true;
    if (e.acquires)
      learn(e.site.warp, l, clock);
    else if (!warps_[e.site.warp].taken[l].is(clock))
      warps_[e.site.warp].pending[l].join(clock);
  }
}

void CtaOrder::send(uint64_t word, bool continues, const Access& e, const Clock (&clock)[2]) {
  if (clock[kCluster].empty() && clock[kAll].empty() && grid_->messages_.find(word) == grid_->messages_.end()) return;
  GridOrder::Message& m = grid_->messages_[word];
  continues |= m.cta == cta_ && m.warp == e.site.warp;
  for (uint32_t l = nearest(); l <= kAll; ++l) {
    if (!continues || (l == kCluster && m.cluster != cluster_)) m.at[l] = {};
    m.at[l].join(clock[l]);
  }
  m.cluster = cluster_;
  m.cta = cta_;
  m.warp = e.site.warp;
}

template <class WordsOf>
void CtaOrder::synchronise(const Access& e, uint32_t mask, WordsOf&& words_of) {
  if (!follows() || (!active_ && !e.releases && grid_->messages_.empty())) return;
  // `red` reads, but that read begins no acquire pattern (8.8).
  if (e.op != Op::kWrite && !(e.op == Op::kAtomic && e.site.inst.flags & kFlagReduces))
    for (uint32_t m = mask; m; m &= m - 1) words_of(first_lane(m), [&](uint64_t word, bool) { receive(word, e); });
  if (e.op == Op::kRead) return;
  Clock clock[2];
  for (uint32_t l = nearest(); l <= kAll; ++l) clock[l] = published(e, l);
  for (uint32_t m = mask; m; m &= m - 1)
    words_of(first_lane(m), [&](uint64_t word, bool whole) { send(word, e.op == Op::kAtomic || !whole, e, clock); });
}

void CtaOrder::strong(const DeviceAccess& e) {
  synchronise(e, e.mask & ~e.inputs, [&](uint32_t i, auto each) {
    const uint64_t begin = e.address_of(i), end = begin + e.bytes_of(i);
    for (uint64_t word = begin / 4; word * 4 < end; ++word) each(word, e.bytes_of(i) >= 4);
  });
}

void CtaOrder::strong_shared(const SharedAccess& e, uint32_t i, uint32_t owner) {
  constexpr uint64_t kShared = uint64_t{1} << 63;  // no address has this bit
  synchronise(e, 1u << i, [&](uint32_t, auto each) {
    const uint32_t begin = e.offset[i], end = begin + e.bytes_of(i);
    for (uint32_t word = begin / 4; word * 4 < end; ++word)
      each(kShared | uint64_t{owner} << 24 | word, e.bytes_of(i) >= 4);
  });
}

void CtaOrder::fence(const Fence& e) {
  if (e.proxy) {
    if (grid_ && static_cast<Space>(e.site.inst.space) != Space::kShared) grid_->proxy_fenced_ = true;
    return;
  }
  if (!follows() || e.site.inst.scope == MemoryScope::kCta) return;
  active_ = true;
  const uint32_t warp = e.site.warp, farthest = e.site.inst.scope >= MemoryScope::kGpu ? kAll : kCluster;
  Offer& past = warps_[warp].past;
  for (uint32_t l = nearest(); l <= farthest && e.site.inst.flags & kFlagAcquire; ++l) take_pending(warp, l);
  for (uint32_t l = nearest(); l <= farthest && e.site.inst.flags & kFlagRelease; ++l) {
    past.fenced[l].others = past.known;
    shadow_.row_of(warp, past.fenced[l].own.data());
    past.fenced[l].any = true;
  }
}

// ---- barriers ------------------------------------------------------------------------------------------

void CtaOrder::arrive(uint32_t id, uint32_t warp) {
  const bool of_cluster = id == kClusterBarrierId;
  if (!follows() || (!active_ && !of_cluster)) return;
  active_ = true;
  Offer& past = warps_[warp].past;
  for (uint32_t l = nearest(); l <= kAll; ++l)
    if (past.fenced[l].any) take_pending(warp, l);
  if (!of_cluster) return barriers_[id].join(past);
  GridOrder::ClusterBarrier& barrier = grid_->cluster_barriers_[cluster_];
  Past all{past.known, {}, true};
  shadow_.row_of(warp, all.own.data());
  barrier.known.join(all.of(cta_));
  for (uint32_t l = nearest(); l <= kAll; ++l) barrier.fenced[l].join(past.fenced[l].of(cta_));
}

void CtaOrder::arrive_fenced(uint32_t warp) {
  if (!follows() || !active_) return;
  GridOrder::ClusterBarrier& barrier = grid_->cluster_barriers_[cluster_];
  const Offer& past = warps_[warp].past;
  barrier.known.join(past.fenced[kCluster].of(cta_));
  for (uint32_t l = nearest(); l <= kAll; ++l) barrier.fenced[l].join(past.fenced[l].of(cta_));
}

void CtaOrder::release(uint32_t id, uint32_t waiters) {
  const bool of_cluster = id == kClusterBarrierId;
  if (!follows() || (!active_ && !of_cluster)) return;
  for (uint32_t w = 0; w < n_warps_; ++w) {
    if (!(waiters >> w & 1)) continue;
    Offer& past = warps_[w].past;
    if (!of_cluster) {
      past.join(barriers_[id]);
      continue;
    }
    active_ = true;
    const GridOrder::ClusterBarrier& barrier = grid_->cluster_barriers_[cluster_];
    learn(w, kCluster, barrier.known);
    for (uint32_t l = nearest(); l <= kAll; ++l) {
      past.fenced[l].others.join(barrier.fenced[l]);
      past.fenced[l].any |= !barrier.fenced[l].empty();
    }
  }
  if (!of_cluster) barriers_[id] = {};
}

void CtaOrder::signal(uint32_t offset, uint32_t warp) {
  if (active_) phases_[offset].current.join(warps_[warp].past);
}

/// A warp of another CTA of the cluster: an arrival of the cluster's scope orders device memory too.
void CtaOrder::signal_from(uint32_t offset, const CtaOrder& other, uint32_t warp) {
  if (!follows()) return;
  active_ = true;
  const Offer& past = other.warps_[warp].past;
  Offer& to = phases_[offset].current;
  Past own{past.known, {}, true};
  other.shadow_.row_of(warp, own.own.data());
  to.known.join(own.of(other.cta_));
  for (uint32_t l = nearest(); l <= kAll; ++l) {
    to.fenced[l].others.join(past.fenced[l].of(other.cta_));
    to.fenced[l].any |= past.fenced[l].any;
  }
}

void CtaOrder::complete(uint32_t offset) {
  if (!active_) return;
  Phases& p = phases_[offset];
  p.completed.join(p.current);
  p.current = {};
}

void CtaOrder::observe(uint32_t offset, uint32_t warp) {
  if (const auto it = phases_.find(offset); active_ && it != phases_.end())
    warps_[warp].past.join(it->second.completed);
}

}  // namespace roofgen::sim
