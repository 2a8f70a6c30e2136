// clusterlaunchcontrol: a CTA takes over the work of a cluster that has not begun.
#include <fmt/format.h>

#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

/// Clusters that one cluster takes over, so that others begin too: hardware decides by the load, and may refuse at any
/// time.
constexpr uint32_t kMostCanceled = 2;

/// A response, which is opaque: marks in the upper half that data is unlikely to have.
constexpr uint64_t kCanceled = 0xc10c'a9ce'1ed0'0000, kNotCanceled = 0xc10c'a9ce'1edf'0000;
constexpr uint64_t kMarkMask = 0xffff'ffff'ffff'0000;

}  // namespace

void Machine::launch_control(Warp& w, const Inst& in, uint32_t mask) {
  const auto op = static_cast<LaunchOp>(in.sub);
  if (op == LaunchOp::kCancel) {
    for (uint32_t m = mask; m; m &= m - 1) try_cancel(w, in, first_lane(m));
    return;
  }
  uint32_t canceled = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const uint64_t low = wide_row(w, in.a)[l], high = wide_row(w, in.b)[l], mark = high & kMarkMask;
    if (mark != kCanceled && mark != kNotCanceled)
      throw Fault{"bad-launch-response",
                  "clusterlaunchcontrol.query_cancel of a value that is no response of try_cancel", l};
    if (op == LaunchOp::kIsCanceled) {
      canceled |= static_cast<uint32_t>(mark == kCanceled) << l;
      refused_ |= mark == kNotCanceled;
      continue;
    }
    if (mark != kCanceled)
      throw Fault{"bad-launch-response",
                  "clusterlaunchcontrol.query_cancel.get_first_ctaid of a response that canceled nothing", l};
    row(w, in.d)[l] = static_cast<uint32_t>(op == LaunchOp::kFirstX   ? low
                                            : op == LaunchOp::kFirstY ? low >> 32
                                                                      : high & 0xffff);
  }
  if (op == LaunchOp::kIsCanceled) set_pred(w, in.e, canceled, mask);
}

/// The response arrives as a bulk copy does, with its 16 bytes, at the mbarrier: here, or in each CTA of the cluster.
void Machine::try_cancel(Warp& w, const Inst& in, uint32_t lane) {
  if (refused_)
    throw Fault{"bad-launch-response", "clusterlaunchcontrol.try_cancel after a response that canceled nothing", lane};
  require_order(lane);
  const uint32_t* const list = kernel_.lists.data() + in.list;
  uint64_t to = row(w, in.a)[lane] + list[0], counts = row(w, in.b)[lane] + list[1];
  check_alignment(to, 16, lane);
  check_alignment(counts, 8, lane);
  if (&cta_at(to, lane) != this || &cta_at(counts, lane) != this)
    throw Fault{"out-of-bounds", "the response of try_cancel is for another CTA", lane};
  const uint32_t offset = shared_offset(to, 16, lane), barrier = shared_offset(counts, 8, lane);
  uint64_t response[2] = {0, kNotCanceled};
  if (canceled_ < kMostCanceled)
    if (const std::optional<uint64_t> cta = state_.cancel()) {
      ++canceled_;
      const Dim3& grid = state_.launch.grid;
      response[0] = *cta % grid.x | *cta / grid.x % grid.y << 32;
      response[1] = kCanceled | *cta / grid.x / grid.y;
    }
  std::vector<std::byte> data(16);
  std::memcpy(data.data(), response, 16);
  Machine* const self = this;
  const bool all = in.type && !cluster_.empty();
  for (Machine* target : all ? cluster_ : std::span<Machine* const>(&self, 1)) {
    if (target->ended_) throw Fault{"out-of-bounds", "the response goes to a CTA that has ended", lane};
    use_barrier(w, barrier, lane, *target);
    emit_shared(w, Op::kCopyIn, offset, 16, lane, false, 0, *target);
    target->bulk_copies_.push_back({barrier, w.pc, w.index, lane, {offset}, data, 16, this, target, {}});
    target->wake_phase_waiters();
  }
}

}  // namespace roofgen::sim
