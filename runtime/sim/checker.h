// The listener that finds undefined behaviour of the running CTA: reads of unwritten bytes, accesses to targets of
// pending copies, races between warps and between CTAs. It raises a Fault, which ends the CTA, or, where the
// launch tolerates undefined behaviour, adds a finding.
#pragma once

#include <span>
#include <vector>

#include "runtime/sim/device_shadow.h"
#include "runtime/sim/events.h"
#include "runtime/sim/grid_order.h"
#include "runtime/sim/launch_state.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim {

class Checker {
 public:
  /// `shared`: the CTA's shared memory.
  Checker(LaunchState& state, const std::vector<std::byte>& shared) : state_(state), shared_(shared) {}
  /// The checkers of the CTAs of its cluster, by rank.
  void join(std::vector<Checker*> cluster) { cluster_ = std::move(cluster); }

  void on(const CtaBegin& e);
  void on(const SharedAccess& e);
  void on(const DeviceAccess& e);
  void on(const LocalAccess& e);
  void on(const AsyncLand& e);
  void on(const BarrierArrive& e);
  void on(const BarrierRelease& e);
  void on(const Fence& e);
  void on(const PhaseArrive& e);
  void on(const PhaseComplete& e) { shadow_.complete(e.barrier), order_.complete(e.barrier); }
  void on(const PhasePass& e) { shadow_.observe(e.barrier, e.warp), order_.observe(e.barrier, e.warp); }

  /// Undefined behaviour of a lane: a Fault, or a finding, one of each instruction. `message` is only called when
  /// needed.
  template <class F>
  void report(const Site& site, const char* kind, uint32_t lane, F&& message) {
    if (!state_.tolerated) throw Fault{kind, message(), lane};
    if (!is_noted(site))
      state_.tolerated->push_back(finding_of(state_.kernel, {kind, message(), lane}, cta_, site.warp, site.pc));
  }

  /// Whether every byte of the last request had been written. May be false without need.
  bool all_written() const { return all_written_; }
  /// Which of the bytes were written: bit i is byte i.
  uint32_t written_shared(uint32_t offset, uint32_t bytes) const { return shadow_.written(offset, bytes); }
  uint32_t written_local(uint32_t warp, uint32_t lane, uint32_t offset, uint32_t bytes) const;
  uint64_t bytes() const { return device_.bytes() + shadow_.bytes() + local_written_.size(); }

 private:
  using Outcome = SharedShadow::Outcome;

  bool at_once(const SharedAccess& e);
  bool at_once(const DeviceAccess& e);
  void check_read(const DeviceAccess& e, uint32_t i);
  void check_write(const DeviceAccess& e, uint32_t i);
  uint32_t in_order(const DeviceAccess& e, What what);
  void check_others(const DeviceAccess& e, uint32_t i, What what);
  bool is_noted(const Site& site) const;
  void report(const Access& e, uint32_t i, uint64_t address, Outcome outcome);
  void hand_over(uint32_t warp, uint32_t offset, Op op, bool releases);
  void require_stamps(uint32_t lane) const;
  void hand_over_device(uint32_t warp, uint64_t address, Op op, bool releases);

  LaunchState& state_;
  const std::vector<std::byte>& shared_;
  std::vector<Checker*> cluster_;
  uint64_t cta_ = 0;
  bool all_written_ = true;
  SharedShadow shadow_;
  DeviceShadow device_{shadow_};
  CtaOrder order_{shadow_};
  std::vector<uint8_t> local_written_;  ///< per byte of every thread
};

}  // namespace roofgen::sim
