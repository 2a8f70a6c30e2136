// The asynchronous units of sm_90 in the event model, on hand-written streams.
#include <gtest/gtest.h>

#include "tuner/timing/sm_model.h"

namespace roofgen::timing::warpgroup_model_test {
namespace {

using sass::Step;
using sass::Sync;

enum : uint32_t { kWork, kProduct, kLast, kWaitAll, kLeaveOne, kSyncs, kCopy, kEnd, kFromRegisters, kArrive, kWait };

/// Every instruction once, in the order of the enumeration. The products have N = 128: 64 cycles.
sass::Code code() {
  sass::Code out;
  out.arch = "sm_90";
  for (const auto& [opcode, operands] :
       {std::pair{"FADD", "R1,R1,R1"}, std::pair{"HGMMA.64x128x16.F32.BF16", "R24,gdesc[UR8],R24"},
        std::pair{"HGMMA.64x128x16.F32.BF16", "R24,gdesc[UR8],R24,gsb0"}, std::pair{"WARPGROUP.DEPBAR.LE", "gsb0,0x0"},
        std::pair{"WARPGROUP.DEPBAR.LE", "gsb0,0x1"}, std::pair{"SYNCS.ARRIVE.TRANS64.A1T0", "RZ,[UR4],RZ"},
        std::pair{"UTMALDG.2D", "[UR4],[UR8]"}, std::pair{"EXIT", ""},
        std::pair{"HGMMA.64x128x16.F32.BF16", "R24,R60,gdesc[UR4],R24,gsb0"}, std::pair{"UCGABAR_ARV", ""},
        std::pair{"UCGABAR_WAIT", ""}})
    out.instructions.push_back(sass::decode({"", opcode, operands}, 0, uint64_t{1} << 41));
  return out;
}

Machine machine() {
  Machine m;
  m.interval.fill(1);
  m.instruction_bytes = 1 << 17;
  m.fetch_latency = m.fetch_cycles = 0;
  m.l2_total_bytes_per_cycle = m.copy_l2_bytes_per_cycle = m.shared_copy_l2_bytes_per_cycle = 1000;
  m.dram_bytes_per_cycle = 1000;
  m.product_f16 = 1024;
  m.product_latency = 50;
  m.product_queue = 2;
  m.copy_start = 100;
  m.phase_cycles = 20;
  m.cluster_cycles = 200;
  return m;
}

class Script {
 public:
  Script& work(int n) { return repeat(n, {kWork}); }
  /// Products of one group.
  Script& group(int n, uint32_t last = kLast) { return repeat(n - 1, {kProduct}).repeat(1, {last}); }
  Script& wait_all() { return repeat(1, {kWaitAll}); }
  Script& leave_one() { return repeat(1, {kLeaveOne}); }
  Script& init(uint32_t barrier, uint32_t count) { return sync(Sync::Kind::kInit, barrier, count, 0, 0); }
  Script& arrive(uint32_t barrier, uint32_t bytes = 0) { return sync(Sync::Kind::kArrive, barrier, 1, bytes, 0); }
  Script& wait(uint32_t barrier, uint8_t parity) { return sync(Sync::Kind::kWait, barrier, 0, 0, parity); }
  Script& load(uint32_t barrier, uint32_t bytes, uint8_t ctas = 1) {
    sync(Sync::Kind::kLoad, barrier, 0, bytes, 0, kCopy);
    Sync& s = stream_.syncs.back();
    s.ctas = ctas;
    s.access = static_cast<uint32_t>(stream_.accesses.size());
    sass::Access a;
    a.first_line = static_cast<uint32_t>(stream_.lines.size());
    a.lines = static_cast<uint16_t>(bytes / 128);
    for (uint32_t k = 0; k < a.lines; ++k) stream_.lines.push_back({k, 0xf});
    stream_.accesses.push_back(a);
    return *this;
  }
  Script& send(uint32_t barrier, uint32_t bytes) { return sync(Sync::Kind::kSend, barrier, 0, bytes, 0); }
  Script& meet_cluster() { return repeat(1, {kArrive}).repeat(1, {kWait}); }
  sass::WarpStream end() { return repeat(1, {kEnd}).stream_; }

 private:
  Script& repeat(int n, Step s) {
    for (int k = 0; k < n; ++k) stream_.steps.push_back(s);
    return *this;
  }
  Script& sync(Sync::Kind kind, uint32_t barrier, uint32_t count, uint32_t bytes, uint8_t parity,
               uint32_t index = kSyncs) {
    Sync s;
    s.kind = kind, s.barrier = barrier, s.count = count, s.bytes = bytes, s.parity = parity;
    stream_.steps.push_back({index, Step::kFirstSync + static_cast<uint32_t>(stream_.syncs.size())});
    stream_.syncs.push_back(s);
    return *this;
  }
  sass::WarpStream stream_;
};

SmTime time_of(std::vector<sass::WarpStream> warps, const Machine& m = machine(), double l2_miss = 0) {
  sass::CtaStream cta;
  cta.warps = std::move(warps);
  SmLoad load;
  load.ctas = {&cta};
  load.l2_miss = l2_miss;
  return simulate_sm(m, code(), load);
}

/// A warpgroup, one warp on each scheduler.
std::vector<sass::WarpStream> groups_of(int groups, const sass::WarpStream& warp) {
  return std::vector<sass::WarpStream>(static_cast<size_t>(4 * groups), warp);
}

// ---- Products ------------------------------------------------------------------------------------

TEST(Products, FollowEachOtherAtTheFullRate) {
  const double cycles = time_of(groups_of(1, Script().group(16).wait_all().end())).cycles;
  EXPECT_GE(cycles, 16 * 64 + 50);
  EXPECT_LT(cycles, 16 * 64 + 50 + 30);
}

TEST(Products, TwoWarpgroupsShareTheUnits) {
  const double cycles = time_of(groups_of(2, Script().group(16).wait_all().end())).cycles;
  EXPECT_GE(cycles, 32 * 64 + 50);
  EXPECT_LT(cycles, 32 * 64 + 50 + 30);
}

TEST(Products, OtherWorkRunsMeanwhile) {
  // The group has two products, so that all of it is in the queue when the other work begins.
  const double overlapped = time_of(groups_of(1, Script().group(2).work(120).wait_all().end())).cycles;
  const double serial = time_of(groups_of(1, Script().group(2).wait_all().work(120).end())).cycles;
  EXPECT_LT(overlapped, 2 * 64 + 50 + 30);
  EXPECT_GE(serial, 2 * 64 + 50 + 120);
}

TEST(Products, TheQueueBlocksTheWarpThatFillsIt) {
  // Eight products in front of the other work: with a queue of two, six of them have to begin first.
  const auto warps = groups_of(1, Script().group(8).work(400).wait_all().end());
  Machine deep = machine();
  deep.product_queue = 8;
  EXPECT_GE(time_of(warps).cycles, 5 * 64 + 400);
  EXPECT_LT(time_of(warps, deep).cycles, 8 * 64 + 50 + 30);
}

TEST(Products, TheLatencyOfOneHidesBehindAnother) {
  // A product begins a latency after its issue, or when the unit is free: 15 products behind the first lose nothing.
  EXPECT_EQ(time_of(groups_of(1, Script().group(16).wait_all().end())).cycles -
                time_of(groups_of(1, Script().group(1).wait_all().end())).cycles,
            15 * 64);
}

TEST(Products, OtherInstructionsAreSlowerBesideThem) {
  // The unit multiplies from cycle 50 to 178. With a cycle more for each instruction, 64 of the 170 do not fit there.
  Machine slow = machine();
  slow.beside_product_cycles = 1;
  const auto beside = groups_of(1, Script().group(2).work(170).end());
  const auto behind = groups_of(1, Script().group(2).wait_all().work(170).end());
  EXPECT_NEAR(time_of(beside, slow).cycles - time_of(beside).cycles, 64, 4);
  EXPECT_NEAR(time_of(behind, slow).cycles, time_of(behind).cycles, 4);
}

TEST(Products, AGroupMayBeLeftInFlight) {
  // The wait is for the first group only; the work runs beside the second.
  const auto leaving = groups_of(1, Script().group(1).group(1).leave_one().work(60).wait_all().end());
  const auto waiting = groups_of(1, Script().group(1).group(1).wait_all().work(60).wait_all().end());
  EXPECT_LT(time_of(leaving).cycles + 40, time_of(waiting).cycles);
}

TEST(Products, OperandsInSharedMemoryLimitThem) {
  // 2 KiB of A and 4 KiB of B in 64 cycles are 96 bytes a cycle; B alone 64.
  Machine slow = machine();
  slow.shared_bytes_per_cycle = 64;
  const auto both = groups_of(1, Script().group(16).wait_all().end());
  EXPECT_NEAR(time_of(both, slow).cycles, 16 * 96 + 50, 40);
  Script registers;
  for (int k = 0; k < 16; ++k) registers.group(1, kFromRegisters);
  const auto one = groups_of(1, registers.wait_all().end());
  EXPECT_NEAR(time_of(one, slow).cycles, 16 * 64 + 50, 40);
  EXPECT_NEAR(time_of(both).shared_cycles, 16 * 48, 1);
  EXPECT_NEAR(time_of(one).shared_cycles, 16 * 32, 1);
}

// ---- mbarriers and copies ------------------------------------------------------------------------

TEST(Phases, AConsumerWaitsForTheProducer) {
  const auto producer = Script().init(0, 1).work(500).arrive(0).work(500).end();
  const auto consumer = Script().work(10).wait(0, 0).work(500).end();
  const double cycles = time_of({producer, consumer}).cycles;
  EXPECT_GE(cycles, 500 + 20 + 500);
  EXPECT_LT(cycles, 1100);
  // The phase before is complete from the beginning.
  EXPECT_LT(time_of({producer, Script().work(10).wait(0, 1).work(500).end()}).cycles, 1030);
}

TEST(Phases, AllArrivalsCount) {
  const auto late = Script().work(700).arrive(0).end(), early = Script().work(10).arrive(0).end();
  const auto waits = [](uint32_t count) { return Script().init(0, count).wait(0, 0).end(); };
  EXPECT_GE(time_of({waits(2), early, late}).cycles, 700);
  EXPECT_LT(time_of({waits(1), early}).cycles, 100);
}

TEST(Phases, ExpectedBytesHaveToArrive) {
  // The only arrival is early; what it expects takes the time of the copy engine and of L2.
  const auto warp = Script().init(0, 1).arrive(0, 4096).load(0, 4096).wait(0, 0).end();
  const double cycles = time_of({warp}).cycles;
  const Machine m = machine();
  EXPECT_GE(cycles, m.copy_start + m.l2_latency + 4096 / m.copy_bytes_per_cycle);
  EXPECT_LT(cycles, m.copy_start + m.l2_latency + 4096 / m.copy_bytes_per_cycle + 80);
  EXPECT_GE(time_of({warp}, m, 1).cycles, m.copy_start + m.dram_latency) << "from DRAM";
  EXPECT_EQ(time_of({warp}).broken_waits, 0u);
}

/// A ring of two tiles; the consumer works on each for `work` cycles.
std::vector<sass::WarpStream> ring(int tiles, int work, int stages) {
  Script producer, consumer;
  for (int s = 0; s < stages; ++s)
    producer.init(8 * static_cast<uint32_t>(s), 1).init(64 + 8 * static_cast<uint32_t>(s), 1);
  consumer.work(20);
  for (int k = 0; k < tiles; ++k) {
    const auto stage = 8 * static_cast<uint32_t>(k % stages);
    const auto parity = static_cast<uint8_t>(k / stages & 1);
    producer.wait(64 + stage, parity ^ 1).arrive(stage, 4096).load(stage, 4096);
    consumer.wait(stage, parity).work(work).arrive(64 + stage);
  }
  return {producer.end(), consumer.end()};
}

TEST(Phases, ARingHidesTheCopies) {
  const SmTime one = time_of(ring(20, 500, 1)), two = time_of(ring(20, 500, 2));
  EXPECT_EQ(one.broken_waits + two.broken_waits, 0u);
  EXPECT_GE(one.cycles, 20 * (500 + 380));
  EXPECT_LT(two.cycles, 20 * (500 + 30) + 500);
}

TEST(Phases, AMissingArrivalIsReported) {
  EXPECT_GT(time_of({Script().init(0, 2).arrive(0).wait(0, 0).work(10).end()}).broken_waits, 0u);
  EXPECT_GT(time_of({Script().init(0, 1).arrive(0, 8192).load(0, 4096).wait(0, 0).end()}).broken_waits, 0u);
}

TEST(Copies, MulticastHalvesTheReadsOfL2) {
  Machine m = machine();
  m.copy_l2_bytes_per_cycle = 16;
  const double alone = time_of({Script().init(0, 1).arrive(0, 8192).load(0, 8192).wait(0, 0).end()}, m).cycles;
  const double shared = time_of({Script().init(0, 1).arrive(0, 8192).load(0, 4096, 2).wait(0, 0).end()}, m).cycles;
  EXPECT_NEAR(alone - shared, 4096 / 16, 20);
}

TEST(Copies, TheirWayIntoSharedMemoryIsTheirOwn) {
  // Products take 96 of the 128 bytes a cycle, the copies beside them 64: the products keep their rate.
  const auto both = [](bool copies) {
    std::vector<sass::WarpStream> warps = groups_of(1, Script().group(64).wait_all().end());
    Script producer;
    producer.init(0, 1);
    for (int k = 0; copies && k < 16; ++k) producer.load(0, 16384);
    warps.push_back(producer.end());
    return time_of(warps);
  };
  const SmTime alone = both(false), beside = both(true);
  EXPECT_EQ(beside.fill_cycles, 16 * 16384 / 128);
  EXPECT_EQ(beside.cycles, alone.cycles);
}

TEST(Copies, L2ServesThemFasterIfSeveralSmsReadTheSameLines) {
  Machine m = machine();
  m.copy_l2_bytes_per_cycle = 32, m.shared_copy_l2_bytes_per_cycle = 64;
  const sass::WarpStream warp = Script().init(0, 1).arrive(0, 16384).load(0, 16384).wait(0, 0).end();
  sass::CtaStream cta;
  cta.warps = {warp};
  SmLoad load;
  load.ctas = {&cta};
  load.l2_miss = 0;
  const double alone = simulate_sm(m, code(), load).cycles;
  load.copy_sharing = 1;
  EXPECT_EQ(alone - simulate_sm(m, code(), load).cycles, 15 * 1024 / 64);  // until the last of 16 pieces begins
}

TEST(Clusters, BytesFromAnotherCtaEndAPhaseWhenTheyHaveComeAllTheWay) {
  const auto exchange = [](uint32_t last) {
    return time_of({Script().init(0, 1).arrive(0, 32).send(0, 16).work(100).send(0, last).wait(0, 0).end()});
  };
  const double cycles = exchange(16).cycles;
  EXPECT_GE(cycles, 100 + 200);
  EXPECT_LT(cycles, 100 + 200 + 60);
  EXPECT_EQ(exchange(16).broken_waits, 0u);
  EXPECT_EQ(exchange(12).broken_waits, 1u) << "four bytes never come";
}

TEST(Clusters, TheirBarrierTakesLongerThanTheOneOfACta) {
  const double cycles = time_of({Script().work(100).meet_cluster().end(), Script().meet_cluster().end()}).cycles;
  EXPECT_GE(cycles, 300);
  EXPECT_LT(cycles, 330);
  // It can be used again.
  EXPECT_GE(
      time_of({Script().meet_cluster().meet_cluster().end(), Script().meet_cluster().meet_cluster().end()}).cycles,
      400);
}

TEST(Clusters, TheirBarrierWaitsForNoWarpThatHasEnded) {
  const SmTime early = time_of({Script().end(), Script().work(100).meet_cluster().end()});
  EXPECT_EQ(early.broken_waits, 0u);
  EXPECT_GE(early.cycles, 300);
  EXPECT_LT(early.cycles, 330);
  // The end of the last other warp opens it.
  const SmTime late = time_of({Script().work(500).end(), Script().work(100).meet_cluster().end()});
  EXPECT_EQ(late.broken_waits, 0u);
  EXPECT_GE(late.cycles, 700);
  EXPECT_LT(late.cycles, 730);
}

}  // namespace
}  // namespace roofgen::timing::warpgroup_model_test
