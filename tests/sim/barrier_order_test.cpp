// BarrierOrder decides from one run what a search over all orders of the warps decides.
#include "runtime/sim/barrier_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

namespace roofgen::barrier_order_test {
using sim::BarrierOrder;

namespace {

/// What a warp does: at an mbarrier, or at a barrier by number. A load arrives, expects a byte, and begins to copy it.
struct Step {
  enum class What { kArrive, kLoad, kWait, kSync } what;
  uint32_t barrier;
  uint32_t parity;  ///< of a wait
};
struct Program {
  std::vector<std::vector<Step>> warps;
  std::vector<uint32_t> counts;  ///< by barrier: arrivals of a phase
};

std::string text(const Program& p) {
  std::string out;
  for (size_t b = 0; b < p.counts.size(); ++b) out += fmt::format("barrier {} counts {}\n", b, p.counts[b]);
  for (size_t w = 0; w < p.warps.size(); ++w) {
    out += fmt::format("warp {}:", w);
    for (const Step& s : p.warps[w])
      out += s.what == Step::What::kArrive ? fmt::format(" arrive {}", s.barrier)
             : s.what == Step::What::kLoad ? fmt::format(" load {}", s.barrier)
             : s.what == Step::What::kSync ? fmt::format(" sync {}", s.barrier)
                                           : fmt::format(" wait {}.{}", s.barrier, s.parity);
    out += "\n";
  }
  return out;
}

/// A state of a run.
struct State {
  std::vector<uint32_t> at, pending, phases;
  std::vector<int> bytes, copies;            ///< by barrier: bytes that are expected and not there; under way
  bool fault = false;                        ///< an arrival too many
  std::vector<int> held;                     ///< by warp: the barrier whose phase it waits for, or -1
  std::vector<std::vector<uint32_t>> pairs;  ///< by warp: the phase of each of its steps

  explicit State(const Program& p)
      : at(p.warps.size(), 0),
        pending(p.counts),
        phases(p.counts.size(), 0),
        bytes(p.counts.size(), 0),
        copies(p.counts.size(), 0),
        held(p.warps.size(), -1),
        pairs(p.warps.size()) {}

  bool ended(const Program& p) const {
    if (fault) return false;
    for (size_t w = 0; w < at.size(); ++w)
      if (held[w] >= 0 || at[w] < p.warps[w].size()) return false;
    return true;
  }
  bool can_go_on(const Program& p, uint32_t w) const {
    if (held[w] >= 0 || at[w] == p.warps[w].size()) return false;
    const Step& s = p.warps[w][at[w]];
    return s.what != Step::What::kWait || (phases[s.barrier] & 1) != s.parity;
  }
  void go_on(const Program& p, uint32_t w, BarrierOrder* order, bool* alternative) {
    const Step& s = p.warps[w][at[w]];
    const uint32_t b = s.barrier, pc = at[w]++;
    const auto look = [&](const std::optional<BarrierOrder::Alternative>& a) { *alternative |= a.has_value(); };
    pairs[w].push_back(phases[b]);
    if (s.what == Step::What::kWait) {
      if (order) look(order->pass(b, w, pc));
      return;
    }
    if (order) look(order->arrive(b, w, pc));
    if (s.what == Step::What::kLoad) {
      if (order) look(order->arrive(b, w, pc, true));
      ++bytes[b], ++copies[b];
    }
    if (s.what == Step::What::kSync) held[w] = static_cast<int>(b);
    fault |= pending[b] == 0;
    if (fault) return;
    --pending[b];
    settle(p, b, order, alternative);
  }
  /// A copy ends.
  void land(const Program& p, uint32_t b, BarrierOrder* order, bool* alternative) {
    --bytes[b], --copies[b];
    settle(p, b, order, alternative);
  }

 private:
  void settle(const Program& p, uint32_t b, BarrierOrder* order, bool* alternative) {
    if (pending[b] > 0 || bytes[b] > 0) return;
    pending[b] = p.counts[b];
    ++phases[b];
    if (order) *alternative |= order->complete(b).has_value();
    for (uint32_t v = 0; v < held.size(); ++v)
      if (held[v] == static_cast<int>(b)) {
        held[v] = -1;
        if (order) order->go_on(b, v);
      }
  }
};

/// Whether all runs have the same pairs, and end.
bool is_one(const Program& p) {
  std::set<std::vector<std::vector<uint32_t>>> ends, seen;
  std::vector<State> open{State(p)};
  while (!open.empty()) {
    const State now = std::move(open.back());
    open.pop_back();
    if (now.fault) return false;
    auto key = now.pairs;  // they say how far each warp is, and, with the copies, the state of each barrier
    key.emplace_back(now.copies.begin(), now.copies.end());
    if (!seen.insert(std::move(key)).second) continue;
    bool ended = true;
    for (uint32_t b = 0; b < p.counts.size(); ++b)
      if (now.copies[b] > 0) {
        ended = false;
        open.push_back(now);
        open.back().land(p, b, nullptr, nullptr);
      }
    for (uint32_t w = 0; w < p.warps.size(); ++w) {
      if (!now.can_go_on(p, w)) continue;
      ended = false;
      open.push_back(now);
      open.back().go_on(p, w, nullptr, nullptr);
    }
    if (ended && !now.ended(p)) return false;
    if (ended) ends.insert(now.pairs);
    if (ends.size() > 1) return false;
  }
  return true;
}

/// Whether one run, in a random order, shows that another order pairs otherwise, or does not end.
bool has_alternative(const Program& p, std::mt19937& random) {
  State state(p);
  BarrierOrder order;
  order.begin(static_cast<uint32_t>(p.warps.size()));
  bool out = false;
  for (;;) {
    std::vector<uint32_t> ready;
    for (uint32_t w = 0; w < p.warps.size(); ++w)
      if (state.can_go_on(p, w)) ready.push_back(w);
    const auto warps = static_cast<uint32_t>(p.warps.size());
    for (uint32_t b = 0; b < p.counts.size(); ++b)
      if (state.copies[b] > 0) ready.push_back(warps + b);
    if (ready.empty() || state.fault) return out || !state.ended(p);
    const uint32_t next = ready[random() % ready.size()];
    if (next < warps)
      state.go_on(p, next, &order, &out);
    else
      state.land(p, next - warps, &order, &out);
  }
}

/// Barriers are mbarriers or by number. A ring of slots now and then, so that many programs are right.
Program random_program(std::mt19937& random) {
  Program p;
  const uint32_t warps = 2 + random() % 3, barriers = 1 + random() % 3;
  const bool by_number = random() % 3 == 0;
  using enum Step::What;
  constexpr Step::What kMbarrier[] = {kArrive, kLoad, kWait, kWait};
  for (uint32_t b = 0; b < barriers; ++b) p.counts.push_back(1 + random() % warps);
  p.warps.resize(warps);
  for (auto& steps : p.warps)
    for (uint32_t n = random() % 6; n > 0; --n) {
      const uint32_t b = random() % barriers;
      if (by_number)
        steps.push_back({Step::What::kSync, b, 0});
      else
        steps.push_back({kMbarrier[random() % std::size(kMbarrier)], b, random() % 2});
    }
  return p;
}

/// A producer, and consumers that read each slot; `slip`: which wait is left out, or -1.
Program ring(uint32_t consumers, uint32_t slots, uint32_t steps, int slip) {
  using enum Step::What;
  Program p;
  for (uint32_t s = 0; s < slots; ++s) p.counts.push_back(1);          // full
  for (uint32_t s = 0; s < slots; ++s) p.counts.push_back(consumers);  // empty
  p.warps.resize(consumers + 1);
  int waits = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    const uint32_t slot = i % slots, parity = i / slots & 1;
    if (waits++ != slip) p.warps[0].push_back({kWait, slots + slot, parity ^ 1});
    p.warps[0].push_back({kArrive, slot, 0});
    for (uint32_t c = 1; c <= consumers; ++c) {
      p.warps[c].push_back({kWait, slot, parity});
      p.warps[c].push_back({kArrive, slots + slot, 0});
    }
  }
  return p;
}

/// The wait of actor 1 for the second phase of barrier 0, after its wait at barrier 1, to which the tensor core arrived
/// after the first phase of barrier 0.
std::optional<BarrierOrder::Alternative> second_wait(uint32_t other_lane) {
  BarrierOrder order;
  order.begin(2);
  EXPECT_FALSE(order.commit(0, 0, 0, 1) || order.complete(0) || order.commit(1, 0, other_lane, 2) || order.complete(1));
  EXPECT_FALSE(order.pass(1, 1, 3));
  EXPECT_FALSE(order.commit(0, 0, 0, 4) || order.complete(0));
  return order.pass(0, 1, 5);
}

TEST(BarrierOrder, TheCommitsOfAThreadArriveInTheirOrder) {
  EXPECT_FALSE(second_wait(0));
  const auto other_thread = second_wait(1);
  ASSERT_TRUE(other_thread);
  EXPECT_EQ(other_thread->what, BarrierOrder::Alternative::What::kEarlyWait);
}

}  // namespace

TEST(BarrierOrder, DecidesFromOneRunWhatASearchOverAllOrdersDecides) {
  std::mt19937 random(7);
  size_t otherwise = 0, alike = 0;
  for (int i = 0; i < 20000; ++i) {
    const Program p = random_program(random);
    const bool one = is_one(p);
    ++(one ? alike : otherwise);
    for (int run = 0; run < 3; ++run) ASSERT_EQ(has_alternative(p, random), !one) << text(p);
  }
  EXPECT_GT(alike, 2000u);
  EXPECT_GT(otherwise, 2000u);
}

TEST(BarrierOrder, ARingIsDecidedWithEachOfItsWaitsLeftOut) {
  std::mt19937 random(7);
  for (int slip = -1; slip < 4; ++slip) {
    const Program p = ring(2, 2, 4, slip);
    const bool one = is_one(p);
    // The first wait for a slot passes at once: without it nothing changes.
    EXPECT_EQ(one, slip < 2) << slip;
    for (int run = 0; run < 5; ++run) EXPECT_EQ(has_alternative(p, random), !one) << slip;
  }
}

}  // namespace roofgen::barrier_order_test
