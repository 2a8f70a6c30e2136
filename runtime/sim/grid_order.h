// Happens-before between the CTAs of a launch, as the memory consistency model of the PTX ISA (chapter 8) has it, and
// the accesses of CTAs that nothing orders.
//
// A Clock says, for some CTAs, up to which stamp each warp's accesses are ordered before a point. A release pattern
// (8.8: a release, or a releasing fence and later a strong write) leaves a clock at the word that is written;
// read-modify-writes continue it (8.9.2, observation order), other strong writes of other warps replace it. An acquire
// pattern (an acquire, or a strong read and later an acquiring fence) takes the clock over. Every instruction of both
// patterns must have a scope that includes the other thread (8.7, morally strong). Barriers of the CTA and the cluster
// carry clocks from warp to warp (8.9.4, 8.9.5).
//
// Two conflicting accesses of different CTAs race unless one is ordered before the other, both are strong with scopes
// that include each other, or both store the same value.
//
// Two rules are weaker than the model, for what last-block reductions do in practice: a barrier of the CTA acquires
// what its warps read strongly before, if they have fenced (as in __threadfence, atomicAdd, __syncthreads), and passes
// on that accesses were fenced. Fence-SC order is no order here, because it depends on the schedule.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/sim/access_history.h"
#include "runtime/sim/events.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

/// A stamp of SharedShadow for each warp of a CTA.
using Row = std::array<uint32_t, kMaxWarps>;

/// A Row for each of some CTAs: an immutable tree. Copies and joins share the parts that are equal, so n CTAs that pass
/// on one growing clock cost n paths of the tree.
class Clock {
 public:
  bool empty() const { return !root_; }
  bool is(const Clock& other) const { return root_ == other.root_; }  ///< false: they may be equal
  const Row* of(uint32_t cta) const;
  void join(const Clock& other);
  void add(uint32_t cta, const Row& row);

 private:
  using Node = std::shared_ptr<const void>;  ///< an Inner, or at level 0 a Row
  struct Inner;
  static Node joined(const Node& a, const Node& b, uint32_t level);
  void grow(uint32_t levels);
  Node root_;
  uint32_t levels_ = 0;  ///< the root has 8^levels_ CTAs
};

/// The accesses that a warp may publish: those of its own CTA up to a row, and of others.
struct Past {
  Clock others;
  Row own{};
  bool any = false;
  void join(const Past& other);
  Clock of(uint32_t cta) const;
};

/// What the CTAs of a launch share.
class GridOrder {
 public:
  /// `follows`: the CTAs may synchronise.
  explicit GridOrder(bool follows) : follows_(follows) {}
  bool follows() const { return follows_; }
  AccessHistory& history() { return history_; }
  const AccessHistory& history() const { return history_; }

 private:
  friend class CtaOrder;
  struct Message {
    Clock at[2];                              ///< for threads of the same cluster, and for all
    uint32_t cluster = 0, cta = 0, warp = 0;  ///< of the last writer
  };
  struct ClusterBarrier {
    Clock known, fenced[2];
  };
  bool follows_;
  AccessHistory history_;
  std::unordered_set<uint32_t> by_copy_;              ///< slots of lines that bulk copies have written
  bool proxy_fenced_ = false;                         ///< some CTA has executed fence.proxy.async
  std::unordered_map<uint32_t, LineBits> read_only_;  ///< bytes that ld.global.nc has read, by slot; not of inputs
  std::vector<uint32_t> cluster_;                     ///< by CTA, where clusters have several: a number of its cluster
  std::unordered_map<uint64_t, Message> messages_;    ///< by word
  std::unordered_map<uint32_t, ClusterBarrier> cluster_barriers_;
};

/// The order of one running CTA.
class CtaOrder {
 public:
  explicit CtaOrder(SharedShadow& shadow) : shadow_(shadow) {}
  /// `grid` null: the CTA is alone. `cluster`: a number of its cluster.
  void begin(GridOrder* grid, uint32_t cta, uint32_t cluster, uint32_t warps);

  /// An access to bytes of one line. Null: it is in order, and recorded. Otherwise an access that it races with, and
  /// nothing has changed. `equal`: a write that changes no byte.
  const AccessRecord* touch(uint32_t warp, uint32_t slot, LineBits bits, What what, MemoryScope scope,
                            bool equal = false) {
    if (!grid_) return nullptr;
    if (const GridAccess* last = grid_->history_.newest(slot, bits)) {
      const bool covers = last->what == what || (last->what == What::kWrite && what == What::kRead);
      if (covers && last->cta == cta_ && last->at == at(warp) && (!is_strong(what) || last->scope == scope))
        return nullptr;
      if (last->cta == GridAccess::kSeveral && what == What::kRead && last->what == what) return nullptr;
    }
    return touch_others(warp, slot, bits, what, scope, equal);
  }
  /// Records an access whatever it races with.
  void note(uint32_t warp, uint32_t slot, LineBits bits, What what, MemoryScope scope, bool equal);

  /// ld.global.nc of bytes of one line: whether the launch has written some of them.
  bool read_only(uint32_t slot, LineBits bits);
  bool wrote(uint32_t slot, LineBits bits);  ///< whether the launch has
  bool any_read_only() const { return grid_ && !grid_->read_only_.empty(); }
  bool was_read_only(uint32_t slot, LineBits bits) const;

  // Bulk copies access device memory through the asynchronous proxy.
  void note_copy(uint32_t slot) {
    if (grid_) grid_->by_copy_.insert(slot);
  }
  /// An ordinary write of some of the bytes that no fence.proxy.async is known to make visible to bulk copies.
  const AccessRecord* write_without_proxy_fence(uint32_t slot, LineBits bits) const;

  /// Strong accesses to device memory, before SharedShadow::advance().
  void strong(const DeviceAccess& e);
  /// A strong access to shared memory of the CTA `owner` in a cluster.
  void strong_shared(const SharedAccess& e, uint32_t i, uint32_t owner);
  /// Before SharedShadow::fence().
  void fence(const Fence& e);
  // As in SharedShadow.
  void arrive(uint32_t id, uint32_t warp);
  void arrive_fenced(uint32_t warp);  ///< at the cluster's barrier
  void release(uint32_t id, uint32_t waiters);
  void signal(uint32_t offset, uint32_t warp);
  void signal_from(uint32_t offset, const CtaOrder& other, uint32_t warp);
  void complete(uint32_t offset);
  void observe(uint32_t offset, uint32_t warp);

  uint32_t cta() const { return cta_; }

 private:
  static constexpr uint32_t kCluster = 0, kAll = 1;  ///< levels: the threads that a clock is for
  struct Offer {
    Clock known;
    Past fenced[2];
    void join(const Offer& other);
  };
  struct Warp {
    Offer past;        ///< accesses that are ordered before, and those that a strong write publishes
    Clock pending[2];  ///< read strongly; an acquiring fence makes them known
    Clock taken[2];    ///< became known last
  };

  uint32_t at(uint32_t warp) const { return grid_->follows_ ? warp << 27 | shadow_.now() : 0; }
  bool reaches(MemoryScope scope, uint32_t cta) const;
  bool is_before(const AccessRecord& r, uint32_t warp) const;
  const AccessRecord* touch_others(uint32_t warp, uint32_t slot, LineBits bits, What what, MemoryScope scope,
                                   bool equal);
  bool follows() const { return grid_ && grid_->follows_; }
  /// The nearest of the levels that this launch has.
  uint32_t nearest() const { return grid_->cluster_.empty() ? kAll : kCluster; }
  Clock published(const Access& e, uint32_t level) const;
  void receive(uint64_t word, const Access& e);
  /// `continues`: what others left at the word stays.
  void send(uint64_t word, bool continues, const Access& e, const Clock (&clock)[2]);
  template <class WordsOf>
  void synchronise(const Access& e, uint32_t mask, WordsOf&& words_of);
  void learn(uint32_t warp, uint32_t level, const Clock& clock);
  void take_pending(uint32_t warp, uint32_t level);

  SharedShadow& shadow_;
  GridOrder* grid_ = nullptr;
  uint32_t cta_ = 0, cluster_ = 0, n_warps_ = 0;
  bool active_ = false;  ///< a warp fenced, released or read what was released
  std::array<Warp, kMaxWarps> warps_;
  std::array<Offer, 16> barriers_;
  struct Phases {
    Offer current, completed;
  };
  std::unordered_map<uint32_t, Phases> phases_;  ///< by offset in the shadow
};

}  // namespace roofgen::sim
