#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

using namespace roofgen::test;

namespace {

const std::string kSmall = "whatif --chain 'gemm > bias > gelu > residual > rmsnorm' --M 128 --N 64 --K 64 --executor sim --evals 3 ";

class WhatIfCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  }
  Json parse(const Outcome& o) {
    EXPECT_EQ(o.exit, 0) << o.err;
    return Json::parse(o.out, nullptr, false);
  }
  Home home;
};

void expect_schema(const Json& result) {
  std::ifstream in(ROOFGEN_SOURCE_DIR "/docs/whatif-schema.json");
  std::vector<std::string> errors;
  validate(Json::parse(in), result, "", errors);
  for (const std::string& e : errors) ADD_FAILURE() << e;
}

}  // namespace

TEST_F(WhatIfCli, FiveStepsEveryPartitionTimedAndVerified) {
  const Json r = parse(home.run(kSmall + "--json --html page.html"));
  expect_schema(r);
  ASSERT_EQ(r["partitions"].size(), 16u);
  // Every run of steps is a kernel: a row of 64 columns fits a tile. Each of the 15 was searched once.
  EXPECT_EQ(r["parts"], 15);
  for (const Json& p : r["partitions"]) {
    EXPECT_TRUE(p["time_us"].is_number()) << p["plan"] << " " << p.value("reason", "");
    if (!p.contains("kernels")) continue;
    double sum = 0;
    for (const Json& k : p["kernels"]) {
      sum += k["time_us"].get<double>();
      EXPECT_GT(k["rows_checked"], 0);
      EXPECT_LE(k["error_over_tolerance"], 1.0);
    }
    EXPECT_NEAR(p["time_us"].get<double>() / sum, 1, 1e-9);
    const double product = r["floor"]["time_us"].get<double>() * p["waste"].get<double>() * p["idle"].get<double>() * p["stall"].get<double>();
    EXPECT_NEAR(product / p["time_us"].get<double>(), 1, 1e-9);
  }
  ASSERT_EQ(r["edges"].size(), 4u);
  for (const Json& e : r["edges"]) {
    ASSERT_TRUE(e.contains("fused") && e.contains("cut"));
    // What a verdict rests on was run whole, all its kernels in order.
    for (const Json& p : r["partitions"])
      if (p["plan"] == e["cut"]["plan"]) {
        EXPECT_TRUE(p.contains("verified_together") && p["verified_together"]["passed"].get<bool>()) << p["plan"];
      }
  }
  EXPECT_GT(fs::file_size(home.dir() / "page.html"), 100000u);
  // All is remembered: a forced plan costs nothing new.
  const Json again = parse(home.run(kSmall + "--json --plan 'gemm+bias+gelu | residual+rmsnorm'"));
  EXPECT_EQ(again["fresh"]["compiled"], 0);
  EXPECT_EQ(again["fresh"]["evaluated"], 0);
  EXPECT_EQ(again["plan"]["plan"], "gemm+bias+gelu | residual+rmsnorm");
  EXPECT_EQ(again["best"], r["best"]);
}

TEST_F(WhatIfCli, ValuesThatAreAddedLaterAreKept) {
  const Json r = parse(home.run("whatif --chain 'relu > (v * 0.5) > residual(relu) > softmax' --rows 33 --cols 200 --executor sim --evals 2 --json"));
  expect_schema(r);
  for (const Json& p : r["partitions"]) EXPECT_TRUE(p["time_us"].is_number()) << p["plan"] << " " << p.value("reason", "");
  for (const Json& p : r["partitions"])
    if (p["plan"] == "relu+map | residual+softmax") {
      EXPECT_EQ(p["intermediates"].size(), 2u);
    }
}

TEST_F(WhatIfCli, ASweepHasARunForEachSize) {
  const Json r = parse(home.run("whatif --chain 'relu > rmsnorm' --cols 128 --sweep rows=64,16 --executor sim --evals 1 --json"));
  expect_schema(r);
  ASSERT_EQ(r["sweep"]["runs"].size(), 2u);
  EXPECT_EQ(r["sweep"]["runs"][0]["size"], 16);
}

TEST_F(WhatIfCli, AttentionHasSixteenCutsAndTwoVariants) {
  const Json r = parse(home.run("whatif attention --L 128 --d 64 --batch 1 --heads 1 --evals 4 --executor sim --json"));
  expect_schema(r);
  ASSERT_EQ(r["partitions"].size(), 16u);
  size_t timed = 0;
  for (const Json& p : r["partitions"]) {
    if (p["time_us"].is_number()) ++timed;
    else EXPECT_FALSE(p["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(timed, 2u);
}
