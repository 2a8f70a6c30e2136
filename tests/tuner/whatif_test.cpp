// Composition of parts into partitions and of partitions into verdicts, on synthetic kernels.
#include "tuner/whatif/whatif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/json.h"
#include "generator/ops/attention.h"
#include "tests/support/devices.h"
#include "tests/support/json_schema.h"
#include "tuner/verify/l2_model.h"
#include "tuner/whatif/report.h"
#include "tuner/whatif/subject.h"

namespace roofgen::whatif_test {
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

Device h200() { return test::round_h200(); }

constexpr double kBand = 0.3;  // of every kernel

KernelReport kernel(const std::string& digest, double us, double dram = 1e6, int registers = 64) {
  KernelReport k;
  k.digest = digest;
  k.seconds = k.time.work_seconds = k.time.kernel_seconds = 1e-6 * us;
  k.time.roof = "DRAM";
  k.time.band = kBand;
  k.registers = registers;
  k.occupancy.fraction = 0.5;
  k.occupancy.ctas_per_sm = 2;
  k.work.dram_bytes = dram;
  k.work.ctas = 1000;
  k.work.warps_per_cta = 4;
  return k;
}

KernelReport gemm(const std::string& digest, double us, int64_t tile = 128) {
  KernelReport k = kernel(digest, us, 1e8, 168);
  k.flops = k.work.mma_flops = 1e12;
  k.schedule.params = {{"BM", ParamValue(tile)}};
  return k;
}

PartitionReport partition(const std::string& name, std::vector<size_t> cuts, std::vector<KernelReport> kernels) {
  PartitionReport p;
  p.name = name;
  p.cuts = std::move(cuts);
  p.kernels = std::move(kernels);
  for (const KernelReport& k : p.kernels) {
    p.seconds += k.seconds;
    p.dram_bytes += k.work.dram_bytes;
    p.flops += k.flops;
  }
  p.waste = p.idle = p.stall = 1.2;
  return p;
}

WhatIfReport report(std::vector<std::string> steps, std::vector<PartitionReport> partitions) {
  WhatIfReport r;
  r.steps = std::move(steps);
  r.title = "gemm > bias";
  r.device = h200();
  r.floor = {1e-4, "tensor"};
  r.problem = {"chain", {{"M", 256}}, DType::kBf16, {}, {}};
  r.partitions = std::move(partitions);
  return r;
}

}  // namespace

TEST(WhatIfGap, SharedKernelsAddNoError) {
  const WhatIfReport r = report({"a", "b"}, {});
  const PartitionReport cut = partition("a | b", {0}, {gemm("g", 300), kernel("bias", 60)});
  // The same main loop with an epilogue: 5 us more, but no second kernel.
  const TimeGap same_loop = time_gap(r, cut, partition("a+b", {}, {gemm("gb", 305)}));
  EXPECT_NEAR(same_loop.seconds, 55e-6, 1e-12);
  EXPECT_NEAR(same_loop.error, kBand * std::hypot(60e-6, 5e-6), 1e-12);
  EXPECT_TRUE(same_loop.decided());
  // With another tile, no main loop is known to be equal.
  EXPECT_FALSE(time_gap(r, cut, partition("a+b", {}, {gemm("gb", 305, 256)})).decided());
  // A kernel shared by both partitions adds no error.
  EXPECT_EQ(time_gap(r, cut, cut).error, 0);
  // One binary on another grid, as for another number of splits, is another kernel.
  PartitionReport other = cut;
  other.kernels[1].work.ctas *= 2;
  EXPECT_NEAR(time_gap(r, cut, other).error, kBand * std::hypot(60e-6, 60e-6), 1e-12);
}

TEST(WhatIfGap, AHiddenEpilogueStillAddsError) {
  const WhatIfReport r = report({"a", "b"}, {});
  KernelReport with = gemm("gb", 300);
  const double clocks = r.device.at("sms") * 1e6 * r.device.at("clock_sustained_mhz");
  const double stretch = std::ceil(1000 / r.device.at("sms")) * r.device.at("sms") / 1000;
  with.work.mufu_ops += 1e-5 * r.device.at("mufu_lanes") * clocks;
  with.work.fp32_ops += 2e-5 * r.device.at("fp32_lanes") * clocks;
  with.work.issue_slots += 1e-5 * r.device.at("issue_per_clk") * clocks;
  with.work.dram_bytes += 1e-5 * 1e9 * r.device.at("dram_sustained_gb_s");
  const TimeGap gap = time_gap(r, partition("a", {}, {gemm("g", 300)}), partition("a+b", {}, {with}));
  EXPECT_EQ(gap.seconds, 0);
  EXPECT_NEAR(gap.error, kBand * (3e-5 * stretch + 1e-5), 1e-11);
}

TEST(WhatIfVerdict, AnEdgeOnWhichLittleDependsReadsEither) {
  // One main loop with two epilogues, 1 us apart, beside kernels of 20 us: at most 2 % of the time depends on the edge.
  const auto with_norm = [](double norm_us) {
    WhatIfReport r = report({"a", "b", "c"}, {partition("a+b | c", {1}, {gemm("gb", 501), kernel("c", norm_us)}),
                                              partition("a | b+c", {0}, {gemm("g", 500), kernel("bc", norm_us)})});
    conclude(r);
    return r;
  };
  const WhatIfReport little = with_norm(20);
  EXPECT_EQ(little.edges[0].decision, "either");
  EXPECT_NE(little.edges[0].reason.find("of the time depends on it"), std::string::npos) << little.edges[0].reason;
  EXPECT_EQ(little.edges[1].decision, "either");
  // With kernels of 60 us, 0.3 x 60 us x sqrt(2) of error are more than 3 % of the time.
  EXPECT_EQ(with_norm(60).edges[0].decision, "undecided");
}

TEST(WhatIfVerdict, PartitionsPromotedByAFailureAreRun) {
  // Both partitions named by the first verdicts are wrong; the partitions that replace them must run as well.
  WhatIfReport r =
      report({"a", "b", "c"}, {partition("a | b+c", {0}, {kernel("a", 10), kernel("bc", 10)}),
                               partition("a+b | c", {1}, {kernel("ab", 20), kernel("c", 10)}),
                               partition("a | b | c", {0, 1}, {kernel("a", 10), kernel("b", 20), kernel("c", 10)}),
                               partition("a+b+c", {}, {kernel("abc", 90)})});
  conclude(r);
  std::vector<std::string> run;
  const auto verify = [&](const PartitionReport& p, bool on_whole_grid) -> Result<Verification> {
    run.push_back(p.name + (on_whole_grid ? ", whole" : ""));
    Verification v;
    v.passed = p.name == "a | b | c" || p.kernels.size() == 1;
    if (!v.passed) v.failure = "t2 is off";
    return v;
  };
  const auto go_on = [](size_t, size_t) { return true; };
  ASSERT_TRUE(verify_named(r, 1, go_on, verify));
  EXPECT_THAT(run, testing::ElementsAre("a | b+c, whole", "a+b | c", "a | b | c, whole", "a+b+c"));
  EXPECT_EQ(r.best()->name, "a | b | c");
  EXPECT_THAT(r.find("a+b | c")->failed, HasSubstr("t2 is off"));
  for (const EdgeReport& e : r.edges) EXPECT_EQ(e.cut->partition, "a | b | c");
  // Without time left, failed partitions are still excluded from the verdicts.
  for (PartitionReport& p : r.partitions) p.failed.clear(), p.together.reset();
  conclude(r);
  ASSERT_TRUE(verify_named(
      r, 1, [](size_t done, size_t) { return done < 1; }, verify));
  EXPECT_EQ(r.best()->name, "a+b | c");
}

TEST(WhatIfVerdict, APartitionThatBecomesTheBestRunsOnTheWholeGrid) {
  WhatIfReport r = report({"a", "b"}, {partition("a+b", {}, {kernel("ab", 10)}),
                                       partition("a | b", {0}, {kernel("a", 10), kernel("b", 10)})});
  conclude(r);
  std::vector<std::string> run;
  ASSERT_TRUE(verify_named(
      r, 1, [](size_t, size_t) { return true; },
      [&](const PartitionReport& p, bool on_whole_grid) -> Result<Verification> {
        run.push_back(p.name + (on_whole_grid ? ", whole" : ""));
        Verification v;
        v.passed = p.name != "a+b";
        if (!v.passed) v.failure = "off";
        return v;
      }));
  EXPECT_THAT(run, testing::ElementsAre("a+b, whole", "a | b", "a | b, whole"));
}

TEST(WhatIfVerdict, FusingWinsWithAReason) {
  PartitionReport cut = partition("gemm | bias", {0}, {gemm("g", 300), kernel("bias", 60, 2e8)});
  cut.intermediates = {{0, 6.7e7, 1.5e8, false}};
  WhatIfReport r = report({"gemm", "bias"}, {cut, partition("gemm+bias", {}, {gemm("gb", 302)})});
  conclude(r);
  ASSERT_EQ(r.edges.size(), 1u);
  const EdgeReport& e = r.edges[0];
  EXPECT_EQ(e.decision, "fuse");
  EXPECT_NEAR(e.speedup(), 360.0 / 302, 1e-9);
  EXPECT_THAT(e.reason, HasSubstr("fused is 1.19x as fast (58.0 us less +- 18.0 us)"));
  EXPECT_THAT(e.reason, HasSubstr("it saves 200 MB of DRAM traffic"));
  EXPECT_THAT(e.reason, HasSubstr("the value of gemm (67.0 MB) does not stay in L2 (150 MB pass"));
  EXPECT_EQ(r.best()->name, "gemm+bias");
}

TEST(WhatIfVerdict, FusingLosesAndNamesTheFactor) {
  PartitionReport fused = partition("gemm+norm", {}, {gemm("gn", 600, 64)});
  fused.kernels[0].time.work_seconds = 240e-6;
  fused.kernels[0].work.ctas = 32;
  fused.kernels[0].registers = 255;
  PartitionReport cut = partition("gemm | norm", {0}, {gemm("g", 200), kernel("norm", 20, 1e7)});
  cut.intermediates = {{0, 2e6, 1e7, true}};
  WhatIfReport r = report({"gemm", "norm"}, {fused, cut});
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "separate");
  EXPECT_THAT(r.edges[0].reason, HasSubstr("the value of gemm (2.00 MB) stays in L2"));
  EXPECT_THAT(r.edges[0].reason, StartsWith("separate is 2.73x as fast (380.0 us less"));
  EXPECT_THAT(r.edges[0].reason, HasSubstr("fused fills 32 of 132 SMs (idle 2.50 against 1.00)"));
}

TEST(WhatIfVerdict, AVariantThatWouldFillTheSmsLeavesTheEdgeOpen) {
  PartitionReport fused = partition("a+b", {}, {kernel("ab", 600)});
  fused.kernels[0].work.ctas = 32;
  fused.kernels[0].time.work_seconds = 150e-6;
  WhatIfReport r = report({"a", "b"}, {fused, partition("a | b", {0}, {kernel("a", 150), kernel("b", 100)})});
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "separate");
  EXPECT_THAT(r.edges[0].reason, HasSubstr("fused fills 32 of 132 SMs (idle 4.00 against 1.00)"));
  EXPECT_THAT(r.edges[0].reason, HasSubstr("; no fused variant fills all 132 SMs"));
  for (PartitionReport& p : r.partitions)
    if (p.cuts.empty()) p.untried = {{"split16", true, 512, "not tried"}};
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "undecided");
  EXPECT_THAT(
      r.edges[0].reason,
      StartsWith("fused fills 32 of 132 SMs (idle 4.00, bound by DRAM), and split16, which would fill them, was "
                 "not tried: separate is 2.40x as fast (350.0 us less"));
  EXPECT_THAT(r.edges[0].reason, HasSubstr("; separate is bound by DRAM"));
}

namespace {

/// One kernel for all steps on 32 SMs, the same in parts on all SMs, and separate kernels.
WhatIfReport split_keys(double whole_us, double split_us) {
  KernelReport whole = gemm("w", whole_us), partial = gemm("p", split_us - 5), combine = kernel("c", 5);
  whole.work.ctas = 32;
  whole.time.work_seconds = 1e-6 * std::min(whole_us, split_us);
  partial.work.ctas = 512;
  partial.stage = "partial";
  combine.stage = "combine";
  PartitionReport split = partition("a+b split16 | combine", {}, {partial, combine});
  split.variant = "split16";
  split.splits = true;
  split.intermediates = {{SIZE_MAX, 2e6, 2e6, true, "parts"}};
  PartitionReport cut = partition("a | b", {0}, {kernel("a", 500), kernel("b", 500)});
  cut.intermediates = {{0, 6.7e7, 1.5e8, false}};
  WhatIfReport r = report({"a", "b"}, {partition("a+b", {}, {whole}), split, cut});
  conclude(r);
  return r;
}

}  // namespace

TEST(WhatIfSplit, SplittingWinsWhereSmsAreIdle) {
  const WhatIfReport r = split_keys(400, 105);
  ASSERT_TRUE(r.split);
  EXPECT_EQ(r.split->decision, "split");
  EXPECT_EQ(r.split->variant, "split16");
  EXPECT_NEAR(r.split->gain.seconds, 295e-6, 1e-12);
  EXPECT_NEAR(r.split->speedup(), 400.0 / 105, 1e-9);
  EXPECT_EQ(r.split->whole->ctas, 32);
  EXPECT_EQ(r.split->split->ctas, 512);
  EXPECT_EQ(r.split->split->launches, 2u);
  EXPECT_THAT(r.split->reason, StartsWith("split16 is 3.81x as fast (295.0 us less"));
  EXPECT_THAT(r.split->reason, HasSubstr("whole fills 32 of 132 SMs"));
  EXPECT_THAT(r.split->reason, HasSubstr("splitting costs a launch (3.0 us) and 2.00 MB of parts, written and read "
                                         "once, which stay in L2"));
  // It cuts no edge: it is the best way to fuse one.
  EXPECT_EQ(r.best()->name, "a+b split16 | combine");
  EXPECT_EQ(r.edges[0].fused->partition, "a+b split16 | combine");
  EXPECT_EQ(r.edges[0].decision, "fuse");
}

TEST(WhatIfSplit, AVariantOfAllStepsThatSplitsNoKeysIsAWholeKernel) {
  PartitionReport warpgroup = partition("a+b warpgroup", {}, {kernel("w", 50)});
  warpgroup.variant = "warpgroup";
  WhatIfReport r = report({"a", "b"}, {partition("a+b", {}, {kernel("f", 100)}), warpgroup,
                                       partition("a | b", {0}, {kernel("a", 60), kernel("b", 60)})});
  conclude(r);
  EXPECT_FALSE(r.split);
  PartitionReport split = partition("a+b split2", {}, {kernel("s", 80)});
  split.variant = "split2";
  split.splits = true;
  split.intermediates = {{SIZE_MAX, 2e6, 2e6, true, "parts"}};
  r.partitions.push_back(split);
  conclude(r);
  ASSERT_TRUE(r.split);
  EXPECT_EQ(r.split->whole->partition, "a+b warpgroup");
  EXPECT_EQ(r.split->split->partition, "a+b split2");
}

TEST(WhatIfSplit, TheWholeKernelWinsAndKernelsOfOtherCtasShareNoError) {
  const WhatIfReport r = split_keys(100, 200);
  EXPECT_EQ(r.split->decision, "whole");
  EXPECT_NEAR(r.split->gain.seconds, -100e-6, 1e-12);
  EXPECT_THAT(r.split->reason, StartsWith("whole is 2.00x as fast (100.0 us less"));
  // One schedule and the same FLOPs, but other CTAs: each time has its own error.
  EXPECT_NEAR(r.split->gain.error, kBand * std::sqrt(100e-6 * 100e-6 + 195e-6 * 195e-6 + 5e-6 * 5e-6), 1e-12);
  EXPECT_EQ(split_keys(100, 90).split->decision, "undecided");
}

TEST(WhatIfSplit, WithoutATimeItIsNamedAndLeavesTheEdgesOpen) {
  Partition p{{{0, 2}}, "a+b split16 | combine", ""};
  p.variant = {"split16", 2e6, 512};
  const PartitionReport split = compose(1e-4, p, nullptr, "split16 was not tuned");
  EXPECT_FALSE(split.timed());
  ASSERT_EQ(split.untried.size(), 1u);
  EXPECT_EQ(split.untried[0].because, "not tried");
  PartitionReport fused = partition("a+b", {}, {kernel("ab", 600)});
  fused.kernels[0].work.ctas = 32;
  fused.kernels[0].time.work_seconds = 150e-6;
  WhatIfReport r = report({"a", "b"}, {fused, split, partition("a | b", {0}, {kernel("a", 150), kernel("b", 100)})});
  conclude(r);
  EXPECT_EQ(r.split->decision, "whole only");
  EXPECT_EQ(r.split->reason, "split16 was not tuned");
  EXPECT_EQ(r.edges[0].decision, "undecided");
  EXPECT_THAT(r.edges[0].reason, HasSubstr("split16, which would fill them, was not tried"));
}

TEST(WhatIfSplit, EachInstanceIsAPartitionAndAFullDeviceHasNone) {
  const auto names = [](int64_t rows, int64_t keys) {
    const auto problem = attention_op().complete(
        {"attention", {{"L", rows}, {"kv_len", keys}, {"d", 128}, {"batch", 2}, {"heads", 16}}, DType::kBf16, {}, {}});
    EXPECT_TRUE(problem) << problem.error().message;
    const auto all = AttentionSubject(*problem).partitions(DataFiles(), h200());
    EXPECT_TRUE(all) << all.error().message;
    std::vector<std::string> out;
    for (const Partition& p : *all) {
      if (!p.variant || p.variant->name == "warpgroup") continue;
      out.push_back(p.name);
      EXPECT_EQ(p.parts, (std::vector<Part>{{0, 4}}));
      const double splits = std::stod(p.variant->name.substr(p.variant->name.find_first_of("0123456789")));
      EXPECT_EQ(p.variant->passed_bytes, 4 * splits * 2 * 16 * static_cast<double>(rows) * (128 + 1));
      EXPECT_GE(p.variant->default_ctas, 128);
    }
    return out;
  };
  EXPECT_THAT(names(1, 8192),
              testing::ElementsAre(
                  "qk+scale+softmax+pv merged4", "qk+scale+softmax+pv merged8", "qk+scale+softmax+pv merged16",
                  "qk+scale+softmax+pv split4 | combine", "qk+scale+softmax+pv split8 | combine",
                  "qk+scale+softmax+pv split16 | combine", "qk+scale+softmax+pv warpgroup_even10",
                  "qk+scale+softmax+pv warpgroup_merged4", "qk+scale+softmax+pv warpgroup_merged8",
                  "qk+scale+softmax+pv warpgroup_split4 | combine", "qk+scale+softmax+pv warpgroup_split8 | combine"));
  EXPECT_THAT(names(2048, 8192), testing::IsEmpty());
  EXPECT_THAT(names(1, 64), testing::IsEmpty());
}

TEST(WhatIfSplit, JsonPageAndTextShowIt) {
  for (const WhatIfReport& r : {split_keys(400, 105), split_keys(100, 200)}) {
    const auto j = whatif_json(r);
    test::expect_schema("whatif", j);
    EXPECT_EQ(j["split_keys"]["parts"]["value_of"], "parts");
    const auto page = whatif_page(j, "result", DataFiles());
    ASSERT_TRUE(page) << to_string(page.error());
    bool verdict = false, kernels = false;
    for (const plot::Block& b : page->blocks)
      if (const auto* t = std::get_if<plot::TableBlock>(&b)) {
        verdict |= t->title.starts_with("Split keys: ") && t->rows.at(0).at(0) == "split16";
        kernels |= t->title.starts_with("Kernels of the fastest partition") && t->rows.at(0).at(0) == "partial" &&
                   t->rows.at(1).at(0) == "combine";
      }
    EXPECT_TRUE(verdict);
    EXPECT_TRUE(kernels);
    const std::string text = whatif_text(r, false);
    EXPECT_THAT(text, HasSubstr("split keys: " + std::string(r.split->decision == "split" ? "SPLIT" : "WHOLE") + ": "));
    EXPECT_THAT(text, HasSubstr("combine: 5.0 us"));
  }
}

TEST(WhatIfVerdict, AnEdgeThatNothingFusesNamesItsReason) {
  PartitionReport fused = partition("gemm+norm", {}, {});
  fused.illegal = "a row reduction across CTAs: norm needs all 4096 columns";
  WhatIfReport r =
      report({"gemm", "norm"}, {fused, partition("gemm | norm", {0}, {gemm("g", 200), kernel("norm", 20)})});
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "separate only");
  EXPECT_EQ(r.edges[0].reason, fused.illegal);
  EXPECT_EQ(r.partitions.back().name, "gemm+norm");
}

TEST(WhatIfVerdict, AnInterruptedSideIsNoReasonForTheOther) {
  PartitionReport cut = partition("gemm | norm", {0}, {});
  cut.failed = "norm was not tuned";
  WhatIfReport r = report({"gemm", "norm"}, {partition("gemm+norm", {}, {gemm("gn", 200)}), cut});
  r.interrupted = true;
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "undecided");
  EXPECT_EQ(r.edges[0].reason, "interrupted before a partition that cuts here was timed");
  r.interrupted = false;
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "fused only");
  EXPECT_EQ(r.edges[0].reason, cut.failed);
}

TEST(WhatIfVerdict, InsideTheErrorIsUndecided) {
  WhatIfReport r = report({"gemm", "bias"}, {partition("gemm | bias", {0}, {gemm("g", 300), kernel("bias", 40)}),
                                             partition("gemm+bias", {}, {gemm("gb", 331)})});
  conclude(r);
  EXPECT_EQ(r.edges[0].decision, "undecided");
  EXPECT_THAT(r.edges[0].reason, HasSubstr("inside the error"));
}

TEST(WhatIfPlan, AForcedPlanIsComparedWithTheFastest) {
  WhatIfReport r = report({"gemm", "bias"}, {partition("gemm | bias", {0}, {gemm("g", 300), kernel("bias", 60, 2e8)}),
                                             partition("gemm+bias", {}, {gemm("gb", 302)})});
  r.forced = "gemm | bias";
  conclude(r);
  EXPECT_THAT(r.forced_verdict, HasSubstr("1.19x the time of the fastest, gemm+bias (360.0 us against 302.0 us): "
                                          "the fastest saves 200 MB of DRAM traffic"));
}

TEST(WhatIfCompose, MeasuredKernelsHaveNoL2Statement) {
  const auto chain = Chain::parse("relu > rmsnorm", DType::kBf16);
  ASSERT_TRUE(chain);
  const Device device = h200();
  const Problem problem{"chain", {{"rows", 100}, {"cols", 1000}}, DType::kBf16, {}, {}};
  std::vector<TunedPart> tuned{{{0, 1}, "", kernel("relu", 10, 1e6)}, {{1, 2}, "", kernel("norm", 10, 1e6)}};
  for (TunedPart& t : tuned) t.kernel.measurement.emplace().hot.emplace().median_ns = 1e9 * t.kernel.seconds;
  const PartitionReport p =
      compose(ChainSubject(*chain, problem), device, 1e-6, partitions(*chain, 1000, 1)[1], tuned, nullptr);
  EXPECT_TRUE(p.intermediates.empty());
  EXPECT_EQ(p.dram_bytes, 2e6);
  for (const KernelReport& k : p.kernels) EXPECT_FALSE(k.intermediate_in_l2);
}

TEST(WhatIfCompose, AValueThatStaysInL2CostsNoDramTraffic) {
  const auto chain = Chain::parse("relu > rmsnorm", DType::kBf16);
  ASSERT_TRUE(chain);
  const Device device = h200();
  const auto compose_at = [&](int64_t rows) {
    const int64_t cols = 4096;
    const double value = 2.0 * static_cast<double>(rows * cols);
    std::vector<TunedPart> tuned{{{0, 1}, "", kernel("relu", 0, 2 * value)},
                                 {{1, 2}, "", kernel("norm", 0, 2 * value)}};
    const Problem problem{"chain", {{"rows", rows}, {"cols", cols}}, DType::kBf16, {}, {}};
    return std::pair(
        value, compose(ChainSubject(*chain, problem), device, 1e-6, partitions(*chain, cols, 1)[1], tuned, nullptr));
  };
  const auto [small, stays] = compose_at(1024);
  ASSERT_EQ(stays.intermediates.size(), 1u);
  EXPECT_TRUE(stays.intermediates[0].in_l2);
  EXPECT_EQ(stays.intermediates[0].distance, 2 * small);  // its own bytes and the reads of the adjacent kernel
  EXPECT_EQ(stays.dram_bytes, 2 * small);                 // read x, write y
  const auto [large, leaves] = compose_at(8192);
  EXPECT_FALSE(leaves.intermediates[0].in_l2);
  EXPECT_EQ(leaves.dram_bytes, 4 * large);
  EXPECT_GT(large * 2, kL2Usable * device.at("l2_bytes"));
  EXPECT_GT(leaves.seconds, stays.seconds);
}

/// The same chain on the same device, with and without the measured saving of dependent launches.
TEST(WhatIfCompose, KernelsBehindTheFirstAreDependentLaunches) {
  const auto chain = Chain::parse("relu > gelu > rmsnorm", DType::kBf16);
  ASSERT_TRUE(chain);
  Device device = h200();
  const double saved = 1e-6 * device.at(kDependentSaving);
  const Problem problem{"chain", {{"rows", 100}, {"cols", 1000}}, DType::kBf16, {}, {}};
  std::vector<TunedPart> tuned{
      {{0, 1}, "", kernel("relu", 10)}, {{1, 2}, "", kernel("gelu", 10)}, {{2, 3}, "", kernel("norm", 10)}};
  const std::vector<Partition> all = partitions(*chain, 1000, 1);
  const auto composed = [&] {
    const auto cut = std::find_if(all.begin(), all.end(), [](const Partition& p) { return p.parts.size() == 3; });
    return compose(ChainSubject(*chain, problem), device, 1e-6, *cut, tuned, nullptr);
  };
  const PartitionReport dependent = composed();
  EXPECT_FALSE(dependent.kernels[0].work.dependent);
  EXPECT_TRUE(dependent.kernels[0].schedule.params.empty());
  for (const KernelReport& k : {dependent.kernels[1], dependent.kernels[2]}) {
    EXPECT_TRUE(k.work.dependent);
    EXPECT_THAT(to_string(k.schedule), HasSubstr("dependent=true"));
  }
  device.cells.erase(kDependentSaving);
  const PartitionReport normal = composed();
  EXPECT_NEAR(normal.seconds - dependent.seconds, 2 * saved, 1e-12);
  for (const KernelReport& k : normal.kernels) EXPECT_FALSE(k.work.dependent);
  device = h200();
  for (TunedPart& t : tuned) t.kernel.measurement.emplace().hot.emplace().median_ns = 1e9 * t.kernel.seconds;
  for (const KernelReport& k : composed().kernels) EXPECT_FALSE(k.work.dependent) << "measured alone";
}

TEST(WhatIfVerdict, AnEdgeStatesTheEffectOfDependentLaunches) {
  PartitionReport cut = partition("a | b", {0}, {gemm("g", 100), kernel("bias", 60)});
  cut.kernels[1].work.dependent = true;
  WhatIfReport r = report({"a", "b"}, {partition("a+b", {}, {gemm("gb", 100)}), cut});
  conclude(r);
  EXPECT_NEAR(r.edges[0].dependent_gain, 0.28e-6, 1e-12);
  EXPECT_THAT(
      r.edges[0].reason,
      HasSubstr("; dependent launches shorten the cut side by 0.28 us more than the fused one: with normal launches "
                "fusing would save 60.3 us"));
  r.partitions[1].kernels[1].work.dependent = false;
  conclude(r);
  EXPECT_EQ(r.edges[0].dependent_gain, 0);
  EXPECT_THAT(r.edges[0].reason, Not(HasSubstr("dependent launches")));
}

TEST(WhatIfCompose, WithoutAKernelForAPartThereIsNoTime) {
  const auto chain = Chain::parse("relu > rmsnorm", DType::kBf16);
  const Device device = h200();
  const Problem problem{"chain", {{"rows", 16}, {"cols", 16}}, DType::kBf16, {}, {}};
  const PartitionReport p =
      compose(ChainSubject(*chain, problem), device, 1e-6, partitions(*chain, 16, 1)[1],
              {{{0, 1}, "", kernel("relu", 1)}, {{1, 2}, "rmsnorm: no legal point", {}}}, nullptr);
  EXPECT_FALSE(p.timed());
  EXPECT_EQ(p.failed, "rmsnorm: no legal point");
}

TEST(WhatIfCompose, AChainKeepsItsDeclaredTensorsAndGivesThemBack) {
  const auto chain = Chain::parse("(v * 2 + slope[n]) > relu", DType::kBf16, {{"slope", DType::kFp32, {"n"}}});
  ASSERT_TRUE(chain) << chain.error().message;
  const Chain copy = *chain;
  const auto formula = copy.formula(copy.whole());
  ASSERT_TRUE(formula) << formula.error().message;
  ASSERT_EQ(formula->tensors().size(), 1u);
  EXPECT_EQ(to_string(formula->tensors()[0]), "slope:fp32[n]");
}

TEST(WhatIfSweep, TheCrossoverLiesWhereTheRatioIsOne) {
  const auto run = [](int64_t m, double fused, double cut) {
    WhatIfReport r =
        report({"gemm", "norm"}, {partition("gemm+norm", {}, {gemm("gn", fused, 64)}),
                                  partition("gemm | norm", {0}, {gemm("g", cut / 2), kernel("n", cut / 2)})});
    r.problem.dims["M"] = m;
    conclude(r);
    return r;
  };
  // Half the time at 256 and twice the time at 4096: equal at the geometric mean, 1024.
  const Sweep sweep = make_sweep("M", {run(256, 100, 200), run(4096, 400, 200)});
  ASSERT_EQ(sweep.crossovers.size(), 1u);
  EXPECT_EQ(sweep.crossovers[0].from, "gemm+norm");
  EXPECT_EQ(sweep.crossovers[0].to, "gemm | norm");
  EXPECT_NEAR(sweep.crossovers[0].at, 1024, 1e-6);
  EXPECT_THAT(sweep_text(sweep, false),
              HasSubstr("crossover between M=256 and M=4096, about 1024: gemm+norm below, gemm | norm above"));
  EXPECT_TRUE(make_sweep("M", {run(256, 100, 200), run(512, 100, 200)}).crossovers.empty());
}

TEST(WhatIfSweep, ASizeWithoutATimeHidesNoCrossover) {
  const auto run = [](int64_t m, double fused, double cut) {
    WhatIfReport r =
        report({"gemm", "norm"}, {partition("gemm+norm", {}, {gemm("gn", fused, 64)}),
                                  partition("gemm | norm", {0}, {gemm("g", cut / 2), kernel("n", cut / 2)})});
    r.problem.dims["M"] = m;
    if (fused == 0)
      for (PartitionReport& p : r.partitions) p.failed = "interrupted";
    conclude(r);
    return r;
  };
  const Sweep sweep = make_sweep("M", {run(256, 100, 200), run(512, 0, 0), run(4096, 400, 200)});
  ASSERT_EQ(sweep.crossovers.size(), 1u);
  EXPECT_EQ(sweep.crossovers[0].below, 256);
  EXPECT_EQ(sweep.crossovers[0].above, 4096);
  EXPECT_THAT(sweep_text(make_sweep("M", {run(256, 100, 200), run(512, 100, 200)}), false), HasSubstr("no crossover"));
  EXPECT_THAT(sweep_text(make_sweep("M", {run(256, 100, 200), run(512, 0, 0)}), false), Not(HasSubstr("no crossover")));
}

TEST(WhatIfViews, JsonKeepsToItsSchemaAndDrawsThePage) {
  PartitionReport cut = partition("gemm | bias", {0}, {gemm("g", 300), kernel("bias", 60, 2e8)});
  cut.intermediates = {{0, 6.7e7, 1.5e8, false}};
  PartitionReport failed = partition("x", {}, {});
  failed.illegal = "a row reduction across CTAs";
  WhatIfReport r = report({"gemm", "bias"}, {cut, partition("gemm+bias", {}, {gemm("gb", 302)}), failed});
  r.forced = "gemm | bias";
  conclude(r);
  const auto other = r;
  for (const Json& j : {whatif_json(r), sweep_json(make_sweep("M", {other, r}))}) {
    test::expect_schema("whatif", j);
    const auto page = whatif_page(j, "result", DataFiles());
    ASSERT_TRUE(page) << to_string(page.error());
    size_t rooflines = 0;
    for (const plot::Block& b : page->blocks)
      if (const auto* roofline = std::get_if<plot::Roofline>(&b)) {
        ++rooflines;
        ASSERT_EQ(roofline->arrows.size(), 1u);
        EXPECT_EQ(roofline->points[roofline->arrows[0].from].name, "gemm | bias");
        EXPECT_EQ(roofline->points[roofline->arrows[0].to].name, "gemm+bias");
      }
    EXPECT_EQ(rooflines, 1u);
  }
  auto broken = whatif_json(r);
  broken.erase("edges");
  EXPECT_FALSE(whatif_page(broken, "result", DataFiles()));
}

TEST(WhatIfViews, TheTextHasLadderEdgesAndVerdict) {
  WhatIfReport r = report({"gemm", "bias"}, {partition("gemm | bias", {0}, {gemm("g", 300), kernel("bias", 60, 2e8)}),
                                             partition("gemm+bias", {}, {gemm("gb", 302)})});
  conclude(r);
  const std::string text = whatif_text(r, false);
  EXPECT_THAT(text, HasSubstr("gemm > bias: FUSE: "));
  EXPECT_THAT(text, HasSubstr("winner    gemm+bias, 302.0 us: "));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace roofgen::whatif_test
