#include "tuner/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/devices.h"

namespace roofgen::verdict_test {

namespace {

Device h200() { return test::round_h200(); }

/// `band`: of every kernel.
FusionVerdict verdict(std::vector<VariantReport> variants, double band, const std::vector<OtherVariant>& untried = {}) {
  for (VariantReport& v : variants)
    for (KernelReport& k : v.kernels) k.time.band = band;
  return fusion_verdict(h200(), variants, untried);
}

/// Kernels of equal share, bound by DRAM, without idle SMs or stalls.
VariantReport variant(const char* name, size_t kernels, double seconds, double dram, int registers) {
  VariantReport v;
  v.name = name;
  v.verified = true;
  v.fused = kernels == 1;
  v.seconds = seconds;
  v.dram_bytes = dram;
  for (size_t i = 0; i < kernels; ++i) {
    KernelReport k;
    k.registers = registers;
    k.occupancy.fraction = 0.25;
    k.seconds = k.time.work_seconds = k.time.kernel_seconds = seconds / static_cast<double>(kernels);
    k.waste = k.time.work_seconds / 1e-3;
    k.time.roof = "DRAM";
    k.work.dram_bytes = dram / static_cast<double>(kernels);
    v.kernels.push_back(k);
  }
  return v;
}

}  // namespace

TEST(Verdict, ClearGainFuses) {
  const FusionVerdict v = verdict({variant("fused", 1, 1e-3, 1e9, 168), variant("unfused", 3, 3e-3, 9e9, 128)}, 0.35);
  EXPECT_EQ(v.decision, "fuse");
  EXPECT_NEAR(v.speedup, 3, 1e-12);
  EXPECT_EQ(v.reason,
            "fused is 3.00x as fast: it saves 8.00 GB of DRAM traffic (waste 1.00 against 3.00, both bound by DRAM)");
}

TEST(Verdict, InsideTheBandIsUndecided) {
  const FusionVerdict v = verdict({variant("fused", 1, 1e-3, 1e9, 168), variant("unfused", 3, 1.3e-3, 9e9, 128)}, 0.35);
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_TRUE(v.reason.starts_with("fused is 1.30x as fast, inside the model's error band of 49 %: it saves 8.00 GB"))
      << v.reason;
}

// One query over 8192 keys, d = 128, 32 heads on an H200: 32 CTAs of the fused kernel read all of K and V.
TEST(Verdict, DecodeWithFewCtasIsIdle) {
  VariantReport fused = variant("fused", 1, 138e-6, 134e6, 168), unfused = variant("unfused", 3, 86e-6, 134e6, 168);
  const double work[] = {34e-6, 18.6e-6, 3.1e-6, 18.6e-6}, idle[] = {3.09, 1, 1.06, 2.65}, ctas[] = {32, 256, 32, 32};
  const double occupancy[] = {0.19, 0.12, 0.38, 0.19};
  unfused.seconds = 0;
  for (size_t i = 0; i < 4; ++i) {
    KernelReport& k = i == 0 ? fused.kernels[0] : unfused.kernels[i - 1];
    k.time.work_seconds = work[i];
    k.time.kernel_seconds = idle[i] * work[i];
    k.seconds = 1.25 * k.time.kernel_seconds;
    k.waste = work[i] / 34e-6;
    k.work.ctas = ctas[i];
    k.occupancy.fraction = occupancy[i];
    (i == 0 ? fused : unfused).seconds = (i == 0 ? 0 : unfused.seconds) + k.seconds;
  }
  EXPECT_EQ(verdict({fused, unfused}, 0.3).reason,
            "separate is 1.48x as fast: fused fills 32 of 132 SMs (idle 3.09 against 1.77; separate fills 32 "
            "of 132 SMs), although fused saves 2 launches; no fused variant fills all 132 SMs");
}

// ---- Too few CTAs on one side ------------------------------------------------------------------

namespace {

/// One stage of `ms`, its work done in 1 / `idle` of it.
VariantReport filling(const char* name, bool fused, double ms, double ctas, double idle = 1) {
  VariantReport v = variant(name, 1, 1e-3 * ms, 1e9, 168);
  v.fused = fused;
  KernelReport& k = v.kernels[0];
  k.stage = "attention";
  k.work.ctas = v.default_ctas = ctas;
  k.time.work_seconds = k.time.kernel_seconds / idle;
  k.waste = k.time.work_seconds / 1e-4;
  k.idle = idle;
  return v;
}

VariantReport failed(VariantReport v, const char* cannot_run = "") {
  v.verified = false;
  v.available = *cannot_run == 0;
  v.rejected_because = cannot_run;
  v.kernels.clear();
  v.seconds = 0;
  return v;
}

const OtherVariant kSplit8{"split8", true, 256, "not tried (--variant)"},
    kSplit16{"split16", true, 512, "not tried (--variant)"};
const VariantReport idle_fused = filling("fused", true, 4, 32, 4), separate = filling("unfused", false, 1.9, 264);

}  // namespace

TEST(IdleSms, AFillingVariantThatWasNotTriedLeavesTheVerdictOpen) {
  FusionVerdict v = verdict({idle_fused, separate}, 0.3, {kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_EQ(v.reason,
            "fused fills 32 of 132 SMs (idle 4.00, bound by DRAM), and split16, which would fill them, was not tried "
            "(--variant): separate is 2.11x as fast only for that reason; separate is bound by DRAM");
  EXPECT_NEAR(v.speedup, 0.475, 1e-12);

  v = verdict({idle_fused, separate}, 0.3, {kSplit8, kSplit16, {"fused", true, 2048, "not tried (--set)"}});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_TRUE(v.reason.starts_with(
      "fused fills 32 of 132 SMs (idle 4.00, bound by DRAM), and split8 and split16, which would fill them, were not "
      "tried (--variant) and fused, which would fill them, was not tried (--set): separate is 2.11x"))
      << v.reason;
}

TEST(IdleSms, AFillingVariantThatFailedDoesToo) {
  for (const auto& [other, why] :
       {std::pair{failed(filling("split16", true, 1, 512)), "split16, which would fill them, was not verified: "},
        std::pair{failed(filling("split16", true, 1, 512), "no tile fits"),
                  "split16, which would fill them, cannot run: no tile fits: "}}) {
    const FusionVerdict v = verdict({idle_fused, other, separate}, 0.3);
    EXPECT_EQ(v.decision, "undecided");
    EXPECT_NE(v.reason.find(why), std::string::npos) << v.reason;
  }
}

TEST(IdleSms, AVerdictThatBecomesADrawIsAlsoOpen) {
  const FusionVerdict v = verdict({filling("fused", true, 4, 64, 2), separate}, 0.3, {kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_EQ(v.reason,
            "fused fills 64 of 132 SMs (idle 2.00, bound by DRAM), and split16, which would fill them, was not tried "
            "(--variant): separate is 2.11x as fast; with it separate would be 1.05x as fast; "
            "separate is bound by DRAM");
}

TEST(IdleSms, AVariantThatNearlyFillsTheSmsCounts) {
  const FusionVerdict v =
      verdict({idle_fused, separate}, 0.3,
              {{"split2", true, 64, "not tried (--variant)"}, {"split4", true, 128, "not tried (--variant)"}});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_TRUE(
      v.reason.starts_with("fused fills 32 of 132 SMs (idle 4.00, bound by DRAM), and split2 and split4, which "
                           "would fill up to 128 of them, were not tried (--variant): separate is 2.11x as "
                           "fast only for that reason"))
      << v.reason;
}

TEST(IdleSms, ADrawThatFillingWouldDecideSaysSo) {
  const FusionVerdict v = verdict({filling("fused", true, 2.2, 32, 4), separate}, 0.3, {kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_NE(v.reason.find("separate is 1.16x as fast, inside the model's error band of 42 %; with it fused "
                          "would be 3.45x as fast"),
            std::string::npos)
      << v.reason;
}

TEST(IdleSms, TheRuleHoldsForSeparateKernelsToo) {
  const FusionVerdict v = verdict({filling("fused", true, 1, 264), filling("unfused", false, 4, 16, 8)}, 0.3,
                                  {{"unfused_split", false, 512, "not tried (--variant)"}, kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_TRUE(
      v.reason.starts_with("separate fills 16 of 132 SMs (idle 8.00, bound by DRAM), and unfused_split, which "
                           "would fill them, was not tried (--variant): fused is 4.00x as fast only for that "
                           "reason"))
      << v.reason;
}

TEST(IdleSms, WithoutAFillingVariantTheVerdictStaysAndSaysSo) {
  // A variant of the other side, one with too few CTAs and one of unknown CTAs do not fill the SMs.
  const FusionVerdict v = verdict({idle_fused, separate}, 0.3,
                                  {{"other", false, 512, "not tried (--variant)"},
                                   {"split2", true, 33, "not tried (--variant)"},
                                   {"odd", true, 0, "not tried (--variant)"}});
  EXPECT_EQ(v.decision, "separate");
  EXPECT_EQ(v.reason,
            "separate is 2.11x as fast: fused fills 32 of 132 SMs (idle 4.00 against 1.00), although fused needs "
            "997.0 us at its roofs against 1.897 ms (bound by DRAM on 32 of 132 SMs against DRAM); no fused variant "
            "fills all 132 SMs");
}

TEST(IdleSms, AFillingVariantThatWasTriedAndIsSlowerIsNamed) {
  const FusionVerdict v = verdict({idle_fused, filling("split16", true, 4.4, 512), separate}, 0.3);
  EXPECT_EQ(v.decision, "separate");
  EXPECT_TRUE(v.reason.ends_with("; split16 fills more, but is slower")) << v.reason;
}

TEST(IdleSms, AFillingVariantThatWasTriedAndIsFasterDecides) {
  const FusionVerdict v = verdict({idle_fused, filling("split16", true, 1, 512), separate}, 0.3);
  EXPECT_EQ(v.decision, "fuse");
  EXPECT_EQ(v.reason.find("SMs"), std::string::npos) << v.reason;
}

TEST(IdleSms, IdleThatDecidesNothingLeavesTheVerdict) {
  // 12 ms with a quarter of the SMs, 3 ms with all: still slower.
  const FusionVerdict v =
      verdict({filling("fused", true, 12, 32, 4), filling("unfused", false, 1, 264)}, 0.3, {kSplit16});
  EXPECT_EQ(v.decision, "separate");
  EXPECT_EQ(v.reason.find("split16"), std::string::npos) << v.reason;
}

TEST(IdleSms, MeasuredRunsFollowTheSameRule) {
  const std::vector<VariantPair> pairs{{"unfused", {1, 1, 1}}, {"fused", {2, 1.95, 2.05}}};
  const auto measured = [&](const VariantReport& fused, const std::vector<OtherVariant>& untried) {
    return fusion_verdict(h200(), {fused, separate}, untried, &pairs);
  };
  FusionVerdict v = measured(idle_fused, {kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_NE(v.reason.find("split16, which would fill them, was not tried (--variant): separate is 2.00x as fast "
                          "(measured, 95 % interval 0.488 to 0.513) only for that reason"),
            std::string::npos)
      << v.reason;
  EXPECT_EQ(measured(idle_fused, {}).decision, "separate");
  EXPECT_EQ(measured(filling("fused", true, 4, 120, 1.1), {kSplit16}).decision, "separate");

  // On the GPU alone nothing is counted: the idle factor is at most SMs over CTAs.
  VariantReport uncounted = idle_fused;
  uncounted.kernels[0].counted = false;
  v = measured(uncounted, {kSplit16});
  EXPECT_EQ(v.decision, "undecided");
  EXPECT_TRUE(v.reason.starts_with("fused fills 32 of 132 SMs, and split16, which would")) << v.reason;
  EXPECT_EQ(measured(uncounted, {}).decision, "separate");
  uncounted.kernels[0].work.ctas = 100;
  EXPECT_EQ(measured(uncounted, {kSplit16}).decision, "separate");
}

TEST(Verdict, MeasuredPairsDecideAndGiveTheRatio) {
  const std::vector<VariantReport> variants{variant("fused", 1, 1e-3, 1e9, 168),
                                            variant("unfused", 3, 1.1e-3, 9e9, 128)};
  const Device device = *load_device(DataFiles(), "h200-sxm");
  std::vector<VariantPair> pairs{{"fused", {1, 1, 1}}, {"unfused", {1.2, 1.15, 1.25}}};
  const FusionVerdict v = fusion_verdict(device, variants, {}, &pairs);
  EXPECT_EQ(v.decision, "fuse");
  EXPECT_TRUE(v.reason.starts_with("fused is 1.20x as fast (measured, 95 % interval 1.150 to 1.250): ")) << v.reason;
  pairs.pop_back();
  EXPECT_EQ(fusion_verdict(device, variants, {}, &pairs).decision, "undecided");
}

TEST(Verdict, SlowerFusedStaysSeparate) {
  EXPECT_EQ(verdict({variant("fused", 1, 3e-3, 1e9, 255), variant("unfused", 3, 1e-3, 9e9, 128)}, 0.35).decision,
            "separate");
}

TEST(Verdict, MissingSideIsNamed) {
  VariantReport gone;
  gone.name = "unfused";
  gone.fused = false;
  gone.available = false;
  gone.rejected_because = "S and P need 128 TB";
  const FusionVerdict v = verdict({variant("fused", 1, 1e-3, 1e9, 168), gone}, 0.35);
  EXPECT_EQ(v.decision, "fused only");
  EXPECT_NE(v.reason.find("S and P need 128 TB"), std::string::npos);
}

TEST(Verdict, TheMissingSideIsOfTheOtherKind) {
  VariantReport split, unfused;
  split.name = "split_k2", split.fused = true, split.available = false, split.rejected_because = "too many tiles";
  unfused.name = "unfused", unfused.fused = false, unfused.available = false,
  unfused.rejected_because = "no kernel takes pairs of columns";
  const FusionVerdict v = verdict({variant("fused", 1, 1e-3, 1e9, 168), split, unfused}, 0.35);
  EXPECT_EQ(v.reason, "unfused cannot run: no kernel takes pairs of columns");
  EXPECT_EQ(verdict({variant("fused", 1, 1e-3, 1e9, 168), split}, 0.35).reason,
            "there is no variant of the other kind to compare it with");
  EXPECT_EQ(
      verdict({variant("fused", 1, 1e-3, 1e9, 168)}, 0.35, {{"unfused", false, 512, "not tried (--variant)"}}).reason,
      "unfused was not tried (--variant)");
}

TEST(Verdict, IntermediatesInL2AreNamedIfNoTrafficIsSaved) {
  VariantReport unfused = variant("unfused", 3, 3e-3, 9e9, 128);
  unfused.kernels[1].intermediate_in_l2 = true;
  EXPECT_EQ(verdict({variant("fused", 1, 1e-3, 1e9, 168), unfused}, 0.35).reason.find("intermediates stay in L2"),
            std::string::npos);
  unfused.dram_bytes = 1e9;
  EXPECT_NE(verdict({variant("fused", 1, 1e-3, 1e9, 168), unfused}, 0.35).reason.find("intermediates stay in L2"),
            std::string::npos);
}

TEST(Verdict, NoVerifiedVariantGivesNoVerdict) {
  VariantReport failed;
  failed.name = "fused";
  EXPECT_EQ(verdict({failed}, 0.35).decision, "none");
}

// ---- The lint rules on our own result ----------------------------------------------------------

namespace {

/// A verified variant of attention with L = 2048, d = 64 and a single head on an H200.
TuneReport one_head(double seconds, double ctas) {
  TuneReport r;
  r.problem.op = "attention";
  r.problem.dims = {{"L", 2048}, {"kv_len", 2048}, {"d", 64}, {"batch", 1}, {"heads", 1}, {"kv_heads", 1}};
  r.device = h200();
  VariantReport v;
  v.name = "fused";
  v.verified = true;
  v.seconds = seconds;
  v.flops = 4.0 * 2048 * 2048 * 64;
  v.dram_bytes = 8.0 * 2048 * 64;
  v.kernels.resize(1);
  v.kernels[0].work.ctas = ctas;
  r.variants.push_back(v);
  return r;
}

std::vector<std::string> rules_broken(const TuneReport& r) {
  const auto formula = WorkFormula::load(DataFiles(), "attention");
  std::vector<std::string> out;
  for (const Warning& w : own_warnings(&*formula, r)) {
    out.push_back(w.rule);
    EXPECT_TRUE(w.text.starts_with("fused: ")) << w.text;
  }
  return out;
}

bool has(const std::vector<std::string>& list, const char* rule) {
  return std::find(list.begin(), list.end(), rule) != list.end();
}

}  // namespace

TEST(OwnLint, IdleSmsCachesAndLaunchesAreSaid) {
  const auto broken = rules_broken(one_head(7e-6, 16));
  EXPECT_TRUE(has(broken, "R09"));
  EXPECT_TRUE(has(broken, "R10"));
  EXPECT_TRUE(has(broken, "R17"));
  EXPECT_FALSE(has(broken, "R12"));
  EXPECT_FALSE(has(broken, "R06"));
}

TEST(OwnLint, KernelsOfSplitKeysHaveTheirOwnNamesAndTheWorkOfOneKernel) {
  TuneReport r = one_head(7e-6, 128);
  VariantReport& split = r.variants[0];
  split.name = "split8";
  split.kernels.resize(2);
  split.kernels[0].stage = "partial";
  split.kernels[1].stage = "combine";
  split.kernels[1].work.ctas = 64;
  const auto formula = WorkFormula::load(DataFiles(), "attention");
  std::vector<std::string> texts;
  for (const Warning& w : own_warnings(&*formula, r)) {
    // The scores do not cross memory.
    EXPECT_NE(w.rule, "R06") << w.text;
    if (w.rule == "R10") texts.push_back(w.text);
  }
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts[0].starts_with("split8: partial has 128 CTAs")) << texts[0];
}

TEST(OwnLint, ATimeBelowTheRoofIsAnAccountingError) { EXPECT_TRUE(has(rules_broken(one_head(0.5e-6, 264)), "R12")); }

TEST(OwnLint, BytesThatTheFormulaLacksAreSaid) {
  TuneReport r = one_head(40e-6, 264);
  r.variants[0].fused = false;
  r.variants[0].kernels.resize(3);
  for (KernelReport& k : r.variants[0].kernels) k.work.ctas = 264;
  EXPECT_TRUE(has(rules_broken(r), "R06"));  // three kernels, but bytes without S and P
  r.variants[0].kernels[1].intermediate_in_l2 = true;
  EXPECT_FALSE(has(rules_broken(r), "R06"));
}

}  // namespace roofgen::verdict_test
