#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/devices.h"
#include "tuner/verdict.h"

namespace roofgen::causes_test {
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

Device h200() { return test::round_h200(); }

/// A kernel with T_work of `us` plus one launch, multiplied by `idle` and `stall`. T_problem is 100 us.
KernelReport kernel(double us, double idle, double stall, const char* roof = "DRAM") {
  KernelReport k;
  k.time.work_seconds = 1e-6 * us + 1e-6 * h200().at("launch_us");
  k.time.kernel_seconds = idle * k.time.work_seconds;
  k.seconds = k.time.seconds = stall * k.time.kernel_seconds;
  k.time.roof = roof;
  k.time.stalled_by = "pipes";
  k.waste = k.time.work_seconds / 100e-6;
  k.work.dram_bytes = 4e12 * 1e-6 * us;
  k.work.l2_bytes = k.work.dram_bytes;
  k.work.ctas = 1320;
  k.occupancy.fraction = 0.25;
  k.registers = 128;
  return k;
}

TimedKernels side(const char* name, const std::vector<KernelReport>& kernels) {
  double seconds = 0;
  for (const KernelReport& k : kernels) seconds += k.seconds;
  return {name, kernels, seconds};
}

struct Compared {
  std::vector<Cause> all;
  std::string text;
};

Compared compare(const std::vector<KernelReport>& fused, const std::vector<KernelReport>& separate) {
  const TimedKernels f = side("fused", fused), s = side("separate", separate);
  Compared out{causes(h200(), f, s), ""};
  out.text = because(out.all, f.seconds < s.seconds ? "fused" : "separate");
  double sum = 0;
  for (const Cause& c : out.all) sum += c.contribution;
  if (!out.all.empty()) {
    EXPECT_NEAR(sum, std::log(s.seconds / f.seconds), 1e-12);
  }
  return out;
}

}  // namespace

TEST(Causes, TrafficThatFusionSavesIsTheFirst) {
  const Compared c = compare({kernel(400, 1, 1.8, "tensor (mma.sync)")}, {kernel(700, 1, 1), kernel(700, 1, 1)});
  EXPECT_EQ(c.all[0].name, "work");
  EXPECT_EQ(c.text,
            "it saves 4.00 GB of DRAM traffic (waste 4.03 against 14.06, bound by tensor (mma.sync) against DRAM), "
            "although the pipes of fused overlap less (stall 1.80 against 1.00)");
}

TEST(Causes, TooFewCtasAreIdleAndRegistersAreNotBlamed) {
  KernelReport fused = kernel(100, 4.1, 1);
  fused.work.ctas = 32;
  fused.registers = 168;
  fused.occupancy.fraction = 0.12;
  const Compared c = compare({fused}, {kernel(100, 1, 1)});
  EXPECT_EQ(c.all[0].name, "idle");
  EXPECT_EQ(c.text, "fused fills 32 of 132 SMs (idle 4.10 against 1.00)");
}

TEST(Causes, APartialWaveAndTheKernelWithItAreNamed) {
  KernelReport last = kernel(100, 1.9, 1);
  last.work.ctas = 140;
  last.stage = "pv";
  EXPECT_EQ(compare({kernel(200, 1, 1)}, {kernel(100, 1, 1), last}).text,
            "pv of separate leaves SMs idle with 140 CTAs on 132 SMs (idle 1.45 against 1.00)");
}

TEST(Causes, LaunchesCountWhereTheWorkIsSmall) {
  const Compared c = compare({kernel(1, 1, 1)}, {kernel(0.4, 1, 1), kernel(0.3, 1, 1), kernel(0.3, 1, 1)});
  EXPECT_EQ(c.all[0].name, "launches");
  EXPECT_EQ(c.text, "it saves 2 launches");
}

TEST(Causes, OccupancyAndRegistersAreNamedWhereTheyStall) {
  KernelReport fused = kernel(100, 1, 2);
  fused.registers = 240;
  fused.occupancy = {1, 4, 0.12, "registers"};
  EXPECT_EQ(compare({fused}, {kernel(100, 1, 1)}).text,
            "the pipes of fused overlap less (stall 2.00 against 1.00, 12 % occupancy against 25 % for 240 registers "
            "against 128)");
  fused.occupancy.limited_by = "shared memory";
  fused.spill_bytes = 64;
  fused.time.stalled_by = "copies";
  EXPECT_EQ(compare({fused}, {kernel(100, 1, 1)}).text,
            "fused waits longer for its asynchronous copies (stall 2.00 against 1.00, 12 % occupancy against 25 %, "
            "limited by shared memory, 64 B of spills)");
  fused.occupancy.fraction = 0.25;
  fused.spill_bytes = 0;
  EXPECT_THAT(compare({fused}, {kernel(100, 1, 1)}).text, Not(HasSubstr("registers")));
}

TEST(Causes, OfAMeasuredStallThePartsAreUnknown) {
  KernelReport fused = kernel(100, 1, 2);
  fused.measurement.emplace();
  EXPECT_EQ(compare({fused}, {kernel(100, 1, 1)}).text, "fused stalls more (stall 2.00 against 1.00)");
}

TEST(Causes, WorkThatOverlapsInOneKernelNeedsLessTimeAtTheRoofs) {
  KernelReport mma = kernel(100, 1, 1, "tensor (mma.sync)");
  mma.work.dram_bytes = 0;
  EXPECT_EQ(compare({kernel(110, 1, 1, "tensor (mma.sync)")}, {mma, kernel(110, 1, 1)}).text,
            "it needs 110.0 us at its roofs against 210.0 us (bound by tensor (mma.sync) against DRAM)");
}

TEST(Causes, IntermediatesInL2SaveL2Traffic) {
  KernelReport reads = kernel(100, 1, 1, "L2");
  reads.work.dram_bytes = 0;
  EXPECT_THAT(compare({kernel(50, 1, 1)}, {reads, reads}).text,
              StartsWith("it saves 600 MB of L2 traffic (waste 0.53 against 2.06, bound by DRAM against L2)"));
}

TEST(Causes, AKernelOfBothSidesIsNotTheCause) {
  KernelReport both = kernel(10, 20, 1), fused = kernel(100, 3, 1);
  both.digest = "same";
  both.stage = "norm";
  both.work.ctas = 4;
  fused.stage = "gemm";
  fused.work.ctas = 44;
  EXPECT_THAT(compare({both, fused}, {both, kernel(100, 1, 1)}).text, StartsWith("gemm of fused fills 44 of 132 SMs"));
}

TEST(Causes, EqualSidesHaveNone) {
  EXPECT_EQ(compare({kernel(100, 1, 1)}, {kernel(100, 1, 1)}).text, "no cause contributes more than 2 %");
}

TEST(Causes, WithoutCountsTheCauseIsUnknown) {
  KernelReport uncounted;
  uncounted.counted = false;
  uncounted.seconds = 1e-3;
  EXPECT_EQ(compare({uncounted}, {kernel(100, 1, 1)}).text, "no work was counted, so the cause is unknown");
}

}  // namespace roofgen::causes_test
