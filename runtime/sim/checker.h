// The listener that finds undefined behaviour of the running CTA: reads of unwritten bytes, accesses to targets of
// pending copies, races between warps and between CTAs. It raises a Fault, which ends the CTA, or, where the CTA goes
// on after the finding, notes it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/sim/barrier_order.h"
#include "runtime/sim/device_shadow.h"
#include "runtime/sim/events.h"
#include "runtime/sim/grid_order.h"
#include "runtime/sim/lane_releases.h"
#include "runtime/sim/launch_state.h"
#include "runtime/sim/line_log.h"
#include "runtime/sim/shared_shadow.h"
#include "runtime/sim/tensor_shadow.h"
#include "runtime/sim/word_log.h"

namespace roofgen::sim {

class Checker {
 public:
  /// `shared`: the CTA's shared memory.
  Checker(LaunchState& state, const RowTable& rows, const std::vector<std::byte>& shared)
      : state_(state), rows_(rows), shared_(shared) {}
  /// The checkers of the CTAs of its cluster, by rank.
  void join(std::vector<Checker*> cluster) { cluster_ = std::move(cluster); }

  void on(const CtaBegin& e);
  void on(const SharedAccess& e);
  void on(const DeviceAccess& e);
  void on(const LocalAccess& e);
  void on(const AsyncLand& e);
  void on(const BulkSource& e);
  void on(const WgmmaIssue& e);
  void on(const WgmmaCommit& e);
  void on(const WgmmaWait& e);
  void on(const TensorAlloc& e);
  void on(const TensorAccess& e);
  void on(const TensorWait& e);
  void on(const TensorFence& e);
  void on(const TensorRead& e);
  void on(const TensorCommit& e);
  void on(const BarrierArrive& e);
  void on(const BarrierWait& e);
  void on(const BarrierRelease& e);
  void on(const LanesExit& e) { exited_ |= static_cast<uint32_t>(e.dead == ~0u) << e.site.warp; }
  void on(const LaneBarrier& e) {
    log_.synchronise(e.site.warp, e.mask, e.dead);
    if ((e.mask | e.dead) == ~0u) releases_.synchronise(e.site.warp);
    share_wait(e.site.warp, e.mask);
  }
  void on(const Fence& e);
  void on(const GridControl& e);
  void on(const MbarrierUse& e);
  void on(const PhaseArrive& e);
  void on(const PhaseComplete& e) {
    Checker& owner = e.rank < 0 ? *this : *cluster_[static_cast<uint32_t>(e.rank)];
    owner.shadow_.complete(e.barrier), owner.order_.complete(e.barrier);
    if (!pairs_) return;
    if (const auto a = pairs_->complete(owner.key_of(e.barrier))) tell(*a, owner.name_of(e.barrier));
  }
  /// All CTAs of the cluster have arrived at its barrier.
  void meet();
  void on(const PhasePass& e) {
    observe(e.barrier, e.site.warp, e.acquires);
    if (!pairs_) return;
    if (const auto a = pairs_->pass(key_of(e.barrier), actor(e.site.warp), e.site.pc)) tell(*a, name_of(e.barrier));
  }
  /// Whether a wait cannot come before the end of the phase that it waits for.
  bool wait_is_certain(uint32_t barrier, uint32_t warp) const {
    return pairs_ && pairs_->has_surely_ended(key_of(barrier), actor(warp));
  }
  void on(const RegistersSet& e);

  /// Something that a lane did wrong: a Fault, or, where the CTA goes on, a note, one for each kind and instruction.
  /// `message` is only called when needed.
  template <class F>
  void report(const Site& site, const char* kind, uint32_t lane, F&& message, bool within_warp = false) {
    if (!goes_on(state_.go_on, kind)) throw Fault{kind, message(), lane, site.pc};
    Finding* const f = noted(site.pc, kind);
    if (f && (within_warp || !f->within_warp)) {
      ++f->count;
      return;
    }
    Finding now = finding_of(state_.kernel, {kind, message(), lane}, cta_, site.warp, site.pc);
    now.within_warp = within_warp;
    if (f)
      merge(*f, std::move(now));
    else
      notes_.push_back({site.pc, std::move(now)});
  }
  /// Whether the CTA has a note of this kind at this instruction: the next one is only counted.
  bool has_noted(uint32_t pc, const char* kind) { return noted(pc, kind) != nullptr; }
  /// The notes of the CTA become findings of the launch.
  void hand_in(std::vector<Finding>& all);

  /// " at k.cu:7": the place of another instruction.
  std::string at(std::optional<uint32_t> pc) const;
  /// Elements of the last request that read bytes which nothing had written.
  uint32_t unwritten() const { return unwritten_; }
  /// A lane's value depends on such bytes, and decides something or leaves the registers.
  /// `stored`: an undefined value was stored there.
  void report_unwritten_value(const Site& load, uint32_t lane, uint64_t address, bool stored, const Site& use);
  /// Which of the bytes were written: bit i is byte i.
  uint32_t written_shared(uint32_t offset, uint32_t bytes) const { return shadow_.written(offset, bytes); }
  /// Local memory of a function that has returned.
  void forget_local(uint32_t warp, uint32_t mask, uint32_t begin, uint32_t end);
  /// Which lanes of a quarter of a column of tensor memory were written.
  uint32_t written_tensor(uint32_t column, uint32_t quarter) const { return tensor_.written(column, quarter); }
  uint32_t written_local(uint32_t warp, uint32_t lane, uint32_t offset, uint32_t bytes) const;
  uint64_t bytes() const {
    return device_.bytes() + shadow_.bytes() + log_.bytes() + lines_.bytes() + local_written_.size();
  }

 private:
  using Outcome = SharedShadow::Outcome;

  /// An access of a lane that no arrival at an mbarrier has released to the reader, although one of another lane of its
  /// warp puts it in order by the clocks of warps.
  struct Unreleased {
    uint32_t warp, lane;
    bool wrote;
    std::optional<uint32_t> pc;
  };
  bool has_seen_exceptions(uint32_t reader) const {
    for (uint32_t v = 0; releases_.any() && v < n_warps_; ++v)
      if (v != reader && releases_.find(v, shadow_.seen_of(shadow_, reader, v))) return true;
    return false;
  }
  void note_arrivals(uint32_t warp) {
    excepted_ = (excepted_ & ~(1u << warp)) | static_cast<uint32_t>(has_seen_exceptions(warp)) << warp;
  }
  std::optional<Unreleased> unreleased(const SharedShadow& by, uint32_t reader, uint32_t offset, uint32_t bytes,
                                       bool writes) const;
  void report_unreleased(const Site& site, uint32_t lane, uint32_t offset, const char* does, const Unreleased& other);
  void access_other(const SharedAccess& e, uint32_t i);
  bool at_once(const SharedAccess& e);
  bool at_once(const DeviceAccess& e);
  void check_read(const DeviceAccess& e, uint32_t i);
  void check_write(const DeviceAccess& e, uint32_t i);
  /// Elements of a request, as masks.
  struct InOrder {
    uint32_t others = 0;  ///< no race with other CTAs
    uint32_t all = 0;     ///< no race at all, and recorded
  };
  InOrder in_order(const DeviceAccess& e, What what);
  bool read_together(const DeviceAccess& e, uint32_t same, LineBits bits);
  void check_others(const DeviceAccess& e, uint32_t i, What what);
  void check_device_proxy(const DeviceAccess& e, uint32_t i);
  Finding* noted(uint32_t pc, const char* kind);
  template <class F>
  void report_unwritten(const Site& site, uint32_t lane, uint64_t address, F&& message);
  void strike(uint64_t address, uint32_t bytes, uint32_t writer);
  void report(const Access& e, uint32_t i, uint64_t address, Outcome outcome, std::optional<uint32_t> place = {});
  template <class E>
  void report_lanes(const E& e, uint32_t i, WordLog::Other other, uint64_t address, const std::byte* there);
  bool at_once_in_order(const SharedAccess& e);
  uint32_t issue_at_once(const SharedAccess& e);
  void check_proxy(const Site& site, uint32_t lane, uint32_t offset, const char* reader);
  void check_variable(const SharedAccess& e);
  void check_read_only(const DeviceAccess& e);
  static bool is_one_value(const SharedAccess& e);
  void observe(uint32_t offset, uint32_t warp, bool acquires) {
    acquires ? shadow_.observe(offset, warp) : shadow_.rely(offset, warp);
    order_.observe(offset, warp);
    log_.synchronise(warp, ~0u, 0, false);
    share_wait(warp, ~0u);
    note_arrivals(warp);
  }
  /// Lanes that synchronise are all after griddepcontrol.wait if one of them is.
  void share_wait(uint32_t warp, uint32_t lanes) {
    if (waited_[warp].lanes & lanes) waited_[warp].lanes |= lanes;
  }
  bool has_waited(uint32_t warp, uint32_t lanes);
  void check_prerequisites(const DeviceAccess& e);
  void hand_over(const Access& e, uint32_t offset);
  void require_stamps(uint32_t lane) const;
  void hand_over_device(const Access& e, uint64_t address);

  // checker_order.cpp: what barriers pair. Keys are of the cluster: of an mbarrier, a barrier by number, a place of
  // strong accesses.
  void begin_pairs();
  uint32_t actor(uint32_t warp) const { return rank_ * n_warps_ + warp; }
  uint64_t key_of(uint32_t mbarrier) const { return uint64_t{rank_} << 40 | mbarrier; }
  uint64_t key_of_number(uint32_t id) const { return key_of(0) | uint64_t{1} << 36 | id; }
  uint64_t key_of_word(uint32_t offset) const { return key_of(offset / 4) | uint64_t{1} << 37; }
  std::string name_of(uint32_t mbarrier) const;
  void tell(const BarrierOrder::Alternative& a, const std::string& barrier);
  void pair_strong(const Access& e, uint64_t place);

  // checker_tensor.cpp: tensor memory
  uint32_t issuer_of(const Site& site, int rank) const { return rank < 0 ? site.warp : kMaxWarps + site.warp; }
  Checker& issuing(int rank) { return rank < 0 ? *this : *cluster_[static_cast<uint32_t>(rank)]; }
  void start_core(const Site& site, uint32_t lane, int rank);
  void report_tensor(const TensorAccess& e, const TensorShadow::Outcome& o);

  LaunchState& state_;
  const RowTable& rows_;
  const std::vector<std::byte>& shared_;
  std::vector<Checker*> cluster_;
  uint32_t rank_ = 0;
  std::optional<bool> has_pairs_;  ///< whether the kernel has mbarriers, or barriers of a part of the CTA
  BarrierOrder own_pairs_;         ///< of the cluster at rank 0
  BarrierOrder* pairs_ = nullptr;  ///< null: no barrier can pair other arrivals
  uint64_t cta_ = 0;
  uint32_t n_warps_ = 0;
  /// Bulk copies that may still read each chunk of shared memory.
  std::unordered_map<uint32_t, uint32_t> bulk_sources_;
  /// By warp: stamps of its batches of products that it has not waited for; by warpgroup: its last product.
  std::vector<std::vector<uint32_t>> batches_;
  std::vector<uint32_t> last_product_;
  /// griddepcontrol.wait: the lanes of a warp that are after it, and the warp's stamp at its first; 0: none.
  struct Waited {
    uint32_t lanes = 0, at = 0;
  };
  std::array<Waited, kMaxWarps> waited_;
  LaneReleases releases_;
  uint32_t excepted_ = 0;  ///< warps that have seen arrivals of some lanes only
  /// The initialisation of an mbarrier, by its offset.
  struct Initialised {
    uint32_t warp, stamp, pc;
    uint32_t phase = 0;  ///< of the cluster's barrier behind which all know it, from 1; 0: none yet
  };
  std::unordered_map<uint32_t, Initialised> initialised_;
  uint32_t cluster_phase_ = 0;  ///< of its barrier that has completed
  /// Of a warp: the stamps of its last fence of such initialisations and of all accesses; the phases of the cluster's
  /// barrier at which it arrived, and for which it has waited.
  struct InCluster {
    uint32_t fenced = 0, released = 0, arrived = 0, waited = 0;
  };
  InCluster in_cluster_[kMaxWarps];
  uint32_t exited_ = 0;     ///< warps
  uint32_t unwritten_ = 0;  ///< elements
  SharedShadow shadow_;
  DeviceShadow device_{shadow_};
  CtaOrder order_{shadow_};
  WordLog log_;
  LineLog lines_{log_};
  TensorShadow tensor_;
  uint32_t last_core_pc_ = 0;
  std::vector<uint8_t> local_written_;  ///< per byte of every thread
  struct Note {
    uint32_t pc;
    Finding finding;
  };
  std::vector<Note> notes_;
  struct UnwrittenRead {
    uint32_t pc, warp;
  };
  /// Noted reads of words that nothing has written, by address / 4: if another warp writes the word without a barrier
  /// between, the cause is a race.
  std::unordered_multimap<uint64_t, UnwrittenRead> unwritten_reads_;
  std::unordered_set<uint64_t> raced_;  ///< words whose first write raced with a read
};

}  // namespace roofgen::sim
