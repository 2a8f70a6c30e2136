#include "tuner/verdict.h"

#include <gtest/gtest.h>

using namespace roofgen;

namespace {

VariantReport variant(const char* name, size_t kernels, double seconds, double dram, int registers) {
  VariantReport v;
  v.name = name;
  v.verified = true;
  v.seconds = seconds;
  v.dram_bytes = dram;
  for (size_t i = 0; i < kernels; ++i) {
    KernelReport k;
    k.registers = registers;
    k.occupancy.fraction = 0.25;
    v.kernels.push_back(k);
  }
  return v;
}

}  // namespace

TEST(Verdict, ClearGainFuses) {
  const FusionVerdict v = fusion_verdict({variant("fused", 1, 1e-3, 1e9, 168), variant("unfused", 3, 3e-3, 9e9, 128)}, 0.35);
  EXPECT_EQ(v.decision, "fuse");
  EXPECT_NEAR(v.speedup, 3, 1e-12);
  EXPECT_NE(v.reason.find("saving 8.00 GB of DRAM traffic"), std::string::npos) << v.reason;
  EXPECT_NE(v.reason.find("168 registers against 128"), std::string::npos) << v.reason;
}

TEST(Verdict, InsideTheBandIsUndecided) {
  EXPECT_EQ(fusion_verdict({variant("fused", 1, 1e-3, 1e9, 168), variant("unfused", 3, 1.3e-3, 9e9, 128)}, 0.35).decision, "undecided");
}

TEST(Verdict, SlowerFusedStaysSeparate) {
  EXPECT_EQ(fusion_verdict({variant("fused", 1, 3e-3, 1e9, 255), variant("unfused", 3, 1e-3, 9e9, 128)}, 0.35).decision, "separate");
}

TEST(Verdict, MissingSideIsNamed) {
  VariantReport gone;
  gone.name = "unfused";
  gone.available = false;
  gone.rejected_because = "S and P need 128 TB";
  const FusionVerdict v = fusion_verdict({variant("fused", 1, 1e-3, 1e9, 168), gone}, 0.35);
  EXPECT_EQ(v.decision, "fused only");
  EXPECT_NE(v.reason.find("S and P need 128 TB"), std::string::npos);
}

TEST(Verdict, NothingVerifiedIsNone) {
  VariantReport failed;
  failed.name = "fused";
  EXPECT_EQ(fusion_verdict({failed}, 0.35).decision, "none");
}
