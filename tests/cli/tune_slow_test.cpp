// Complete problems of realistic size; each takes minutes.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::tune_slow_test {

namespace {

Json tune(const std::string& problem, int* exit = nullptr) {
  const Home home;
  const Outcome o = home.run("tune attention " + problem + " --executor sim --json");
  if (exit) *exit = o.exit;
  EXPECT_EQ(o.exit, 0) << o.err;
  return parse_json(o.out);
}

/// The best variant by all checks, the others by all that the best one did not make needless (their whole grid).
void expect_all_verified(const Json& result) {
  for (const Json& v : result["variants"]) {
    const bool best = v["name"] == result["best_variant"];
    EXPECT_TRUE(v["verified"] == true || (!best && v["partly_verified"] == true)) << v["name"];
    EXPECT_LE(v["verification"]["error_over_tolerance"], 1.0) << v["name"];
  }
}

}  // namespace

TEST(SlowTune, TheMainJob) {
  const Json result = tune("--L 2048 --d 64");
  expect_all_verified(result);
  EXPECT_GE(result["simulated"], 25);  // of 33 compiled
  EXPECT_EQ(result["verdict"]["decision"], "fuse");
}

// Exact counts of the winners, not of default schedules.
TEST(SlowTune, WinnersAreGoodKernels) {
  for (const char* d : {"64", "128"}) {
    const Json result = tune(std::string("--L 2048 --d ") + d + " --evals 40");
    for (const Json& v : result["variants"])
      for (const Json& k : v["kernels"]) {
        const std::string which = v["name"].get<std::string>() + " " + k["name"].get<std::string>() + " d=" + d;
        EXPECT_EQ(k["spill_bytes"], 0) << which;
        EXPECT_LE(k["smem_excess"], 0.02) << which;
        EXPECT_EQ(k["narrow_load_lanes"], 0) << which;
        if (k["dram_bytes"] > 0) {
          EXPECT_LE(k["dram_bytes"].get<double>(), 1.02 * k["compulsory_bytes"].get<double>()) << which;
        }
        if (v["name"] == "fused") {
          EXPECT_LE(k["non_mma_per_mma"], 5.5) << which;
        }
      }
  }
}

TEST(SlowTune, CausalWithOddLengths) { expect_all_verified(tune("--L 1000 --d 80 --causal")); }
TEST(SlowTune, GroupedHeads) { expect_all_verified(tune("--L 257 --d 64 --heads 6 --kv-heads 2")); }
TEST(SlowTune, HalfPrecision) { expect_all_verified(tune("--L 1024 --d 128 --dtype fp16")); }
TEST(SlowTune, CrossAttentionCausalWithLse) {
  expect_all_verified(tune("--L 300 --kv-len 1111 --d 64 --causal --lse"));
}

TEST(SlowTune, AMillionRowsBySlices) {
  const Json result = tune("--L 1000000 --d 64 --evals 2");
  EXPECT_EQ(result["verdict"]["decision"], "fused only");
  EXPECT_EQ(result["simulated"], 0);
  const Json& fused = result["variants"][0];
  EXPECT_TRUE(fused["partly_verified"]) << "a grid of a million rows is not run";
  EXPECT_LT(fused["verification"]["ctas_run"], fused["verification"]["ctas_total"]);
  EXPECT_EQ(fused["kernels"][0]["origins"]["l2_bytes"], "model");
}

}  // namespace roofgen::test::tune_slow_test
