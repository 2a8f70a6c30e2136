// The event model of one SM on hand-written streams.
#include "tuner/timing/sm_model.h"

#include <gtest/gtest.h>

#include "tuner/timing/l1_cache.h"

namespace roofgen::timing::sm_model_test {
namespace {

using sass::Step;

/// Instructions 0: arithmetic, 1: waits at a barrier, 2: only arrives, 3: the end.
sass::Code code() {
  sass::Code out;
  out.arch = "sm_80";
  for (const auto& [opcode, operands] : {std::pair{"FADD", "R1,R1,R1"}, std::pair{"BAR.SYNC", "0x1,0x40"},
                                         std::pair{"BAR.ARV", "0x1,0x40"}, std::pair{"EXIT", ""}})
    out.instructions.push_back(sass::decode({"", opcode, operands}, 0, uint64_t{1} << 41));
  return out;
}

Machine machine() {
  Machine m;
  m.interval.fill(1);
  m.instruction_bytes = 1 << 17;
  m.fetch_latency = m.fetch_cycles = 0;
  m.l2_total_bytes_per_cycle = m.dram_bytes_per_cycle = 1000;
  return m;
}

class Script {
 public:
  Script& work(int n) {
    for (int k = 0; k < n; ++k) stream_.steps.push_back({0});
    return *this;
  }
  Script& sync(uint32_t number, uint32_t warps) { return add({1, Step::barrier(number, warps)}); }
  Script& arrive(uint32_t number, uint32_t warps) { return add({2, Step::barrier(number, warps)}); }
  sass::WarpStream end() { return add({3}).stream_; }

 private:
  Script& add(Step s) {
    stream_.steps.push_back(s);
    return *this;
  }
  sass::WarpStream stream_;
};

double cycles(std::vector<sass::WarpStream> warps) {
  sass::CtaStream cta;
  cta.warps = std::move(warps);
  SmLoad load;
  load.ctas = {&cta};
  return simulate_sm(machine(), code(), load).cycles;
}

TEST(NamedBarriers, OnlyTheirWarpsWait) {
  // Warps 0 and 1 meet early, 2 and 3 late. With one barrier of all warps the early ones would wait for the late ones
  // before their own long part.
  const auto early = [] { return Script().sync(1, 2).work(1000).end(); };
  const auto late = [] { return Script().work(1000).sync(2, 2).end(); };
  EXPECT_LT(cycles({early(), early(), late(), late()}), 1100);
  const auto all_early = [] { return Script().sync(0, 4).work(1000).end(); };
  const auto all_late = [] { return Script().work(1000).sync(0, 4).end(); };
  EXPECT_GT(cycles({all_early(), all_early(), all_late(), all_late()}), 2000);
}

TEST(NamedBarriers, AProducerDoesNotWaitWhereItArrives) {
  // The producer goes on after its arrival, so that the parts of the two overlap.
  const double overlapped =
      cycles({Script().work(500).arrive(1, 2).work(500).end(), Script().sync(1, 2).work(500).end()});
  EXPECT_GT(overlapped, 1000);
  EXPECT_LT(overlapped, 1100);
  // A consumer that waits for the second part, too.
  const double serial = cycles(
      {Script().work(500).arrive(1, 2).work(500).arrive(2, 2).end(), Script().sync(1, 2).sync(2, 2).work(500).end()});
  EXPECT_GT(serial, 1500);
}

TEST(NamedBarriers, ARingOfTwoSlots) {
  // The producer fills a slot when the consumer has emptied it: full 1 and 2, empty 3 and 4. The slower of the two
  // decides.
  Script producer, consumer;
  for (int i = 0; i < 8; ++i) {
    const auto slot = static_cast<uint32_t>(i % 2);
    if (i >= 2) producer.sync(3 + slot, 2);
    producer.work(100).arrive(1 + slot, 2);
    consumer.sync(1 + slot, 2).work(200);
    if (i < 6) consumer.arrive(3 + slot, 2);
  }
  const double time = cycles({producer.end(), consumer.end()});
  EXPECT_GT(time, 8 * 200);
  EXPECT_LT(time, 8 * 230 + 200);
}

TEST(NamedBarriers, WarpsThatHaveEndedCountAtABarrierOfAllWarps) {
  EXPECT_LT(cycles({Script().end(), Script().work(10).sync(0, 2).work(10).end()}), 100);
}

// ---- L1 ------------------------------------------------------------------------------------------

TEST(L1, KeptSectorsLeaveWhenTheirLineDoes) {
  L1Cache l1(8 * 128);  // one set of eight lines
  for (uint64_t line = 0; line < 8; ++line) l1.keep(line, 0b0011);
  l1.keep(0, 0b0100);
  EXPECT_EQ(l1.take_evicted(), 0u);
  EXPECT_EQ(l1.missing(0, 0b1111), 0b1000);
  EXPECT_EQ(l1.missing(100, 1), 1);  // in the place of line 1
  EXPECT_EQ(l1.take_evicted(), 2u);
  EXPECT_EQ(l1.take_evicted(), 0u);
  for (uint64_t line = 101; line < 109; ++line) l1.missing(line, 1);
  EXPECT_EQ(l1.take_evicted(), 6 * 2u + 3);  // lines 2 to 7, and line 0 with its three sectors
  for (uint64_t line = 200; line < 300; ++line) l1.missing(line, 1);
  EXPECT_EQ(l1.take_evicted(), 0u);
}

TEST(L1, WithoutALineStoresGoOnAtOnce) {
  L1Cache l1(0);
  l1.keep(1, 0b0111);
  EXPECT_EQ(l1.take_evicted(), 3u);
  EXPECT_EQ(l1.missing(1, 0b0111), 0b0111);
}

}  // namespace
}  // namespace roofgen::timing::sm_model_test
