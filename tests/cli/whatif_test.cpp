#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

namespace roofgen::test::whatif_test {

namespace {

const std::string kSmall =
    "whatif --chain 'gemm > bias > gelu > residual > rmsnorm' --M 128 --N 64 --K 64 --executor sim --evals 3 ";

class SlowWhatIfCli : public Compiling {};

}  // namespace

TEST_F(SlowWhatIfCli, FiveStepsEveryPartitionTimedAndVerified) {
  const Json r = parse(home.run(kSmall + "--json --html page.html"));
  expect_schema("whatif", r);
  ASSERT_EQ(r["partitions"].size(), 16u);
  // Every sequence of consecutive steps has a kernel: a row of 64 columns fits a tile. Each of the 15 kernels was
  // searched once.
  EXPECT_EQ(r["parts"], 15);
  for (const Json& p : r["partitions"]) {
    EXPECT_TRUE(p["time_us"].is_number()) << p["plan"] << " " << p.value("reason", "");
    if (!p.contains("kernels")) continue;
    double sum = 0;
    for (const Json& k : p["kernels"]) {
      sum += k["time_us"].get<double>();
      EXPECT_GT(k["verification"]["rows_checked"], 0);
      EXPECT_LE(k["verification"]["error_over_tolerance"], 1.0);
    }
    EXPECT_NEAR(p["time_us"].get<double>() / sum, 1, 1e-9);
    const double product = r["floor"]["time_us"].get<double>() * p["waste"].get<double>() * p["idle"].get<double>() *
                           p["stall"].get<double>();
    EXPECT_NEAR(product / p["time_us"].get<double>(), 1, 1e-9);
  }
  ASSERT_EQ(r["edges"].size(), 4u);
  for (const Json& e : r["edges"]) {
    ASSERT_TRUE(e.contains("fused") && e.contains("cut"));
    // The partitions behind a verdict ran as a whole, with all kernels in order.
    for (const Json& p : r["partitions"])
      if (p["plan"] == e["cut"]["plan"]) {
        EXPECT_TRUE(p.contains("verified_together") && p["verified_together"]["passed"].get<bool>()) << p["plan"];
      }
  }
  EXPECT_GT(fs::file_size(home.dir() / "page.html"), 100000u);
  // All results are stored: a forced plan needs no new work.
  const Json again = parse(home.run(kSmall + "--json --plan 'gemm+bias+gelu | residual+rmsnorm'"));
  EXPECT_EQ(again["fresh"]["compiled"], 0);
  EXPECT_EQ(again["fresh"]["evaluated"], 0);
  EXPECT_EQ(again["plan"]["plan"], "gemm+bias+gelu | residual+rmsnorm");
  EXPECT_EQ(again["best"], r["best"]);
}

namespace {

std::string pins(const Json& params) {
  std::string out;
  for (const auto& [name, value] : params.items()) out += " --set " + name + "=" + json_words(value);
  return out;
}

/// The kernel of all steps of a chain is that of `tune`: no slower than the fastest of its kernels of one launch, and
/// of the same time at the same schedule. `apart`: where the definitions of a formula stand in another order.
void expect_the_kernel_of_tune(const Home& home, const std::string& chain, const std::string& op,
                               const std::string& sizes, const std::string& evals = "", double apart = 1e-3) {
  SCOPED_TRACE(chain);
  const Outcome whatif = home.run("whatif --executor sim --json --chain '" + chain + "' " + sizes + evals);
  ASSERT_EQ(whatif.exit, 0) << whatif.err;
  const Json r = parse_json(whatif.out);
  const auto whole = std::find_if(r["partitions"].begin(), r["partitions"].end(), [](const Json& p) {
    return p["plan"].get<std::string>().find('|') == std::string::npos;
  });
  ASSERT_TRUE(whole != r["partitions"].end() && whole->contains("kernels"));
  const Json& kernel = (*whole)["kernels"][0];
  const double time = kernel["time_us"].get<double>();
  // "gemm+bias warpgroup BM=128 ...": the plan, then the variant of `tune`, if it is not `fused`.
  const std::string text = kernel["schedule"]["text"].get<std::string>(), plan = (*whole)["plan"].get<std::string>();
  const std::string rest = text.substr(plan.size() + 1, text.find('=') - plan.size() - 1);
  const std::string variant = rest.find(' ') == std::string::npos ? "fused" : rest.substr(0, rest.find(' '));

  const std::string tune = "tune " + op + " " + sizes + " --executor sim --cold --json ";
  const Outcome same = home.run(tune + "--evals 1 --variant " + variant + pins(kernel["schedule"]["params"]));
  ASSERT_EQ(same.exit, 0) << same.err;
  EXPECT_NEAR(parse_json(same.out)["variants"][0]["time_us"].get<double>() / time, 1, apart);
  const Outcome searched = home.run(tune + evals);
  ASSERT_EQ(searched.exit, 0) << searched.err;
  const Json found = parse_json(searched.out);
  size_t compared = 0;
  for (const Json& v : found["variants"]) {
    if (!v["available"].get<bool>() || !v["time_us"].is_number() || v["launches"] != 1) continue;
    EXPECT_LE(time, 1.03 * v["time_us"].get<double>()) << v["name"];
    ++compared;
  }
  EXPECT_GE(compared, 1u);
}

}  // namespace

TEST(WhatIfCli, AGemmWithItsEpilogueIsThatOfTune) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  expect_the_kernel_of_tune(home, "gemm > gelu", "gemm --epilogue 'gelu(acc)'", "--M 256 --N 256 --K 128",
                            " --evals 2");
}

TEST_F(SlowWhatIfCli, TheKernelOfAChainIsThatOfTune) {
  expect_the_kernel_of_tune(home, "gemm > bias > residual > relu",
                            "gemm --epilogue 'relu(acc + bias[n] + residual[m,n])'", "--M 2048 --N 1024 --K 512");
  expect_the_kernel_of_tune(home, "gemm > silu", "gemm --epilogue 'silu(acc)'",
                            "--M 333 --N 512 --K 1024 --dtype fp16");
  expect_the_kernel_of_tune(home, "gemm > bias", "gemm --epilogue 'acc + bias[n]'", "--M 4096 --N 2048 --K 512");
  expect_the_kernel_of_tune(home, "rmsnorm > quant(fp8)", "rmsnorm --quant fp8", "--rows 2048 --cols 4096", "", 0.02);
  expect_the_kernel_of_tune(home, "relu > bias", "map --expr 'relu(x) + bias[n]'", "--rows 4096 --cols 1024");
}

TEST_F(SlowWhatIfCli, ValuesForLaterStepsAreKept) {
  const Json r =
      parse(home.run("whatif --chain 'relu > (v * 0.5) > residual(relu) > softmax' --rows 33 --cols 200 --executor sim "
                     "--evals 2 --json"));
  expect_schema("whatif", r);
  for (const Json& p : r["partitions"])
    EXPECT_TRUE(p["time_us"].is_number()) << p["plan"] << " " << p.value("reason", "");
  for (const Json& p : r["partitions"])
    if (p["plan"] == "relu+map | residual+softmax") {
      EXPECT_EQ(p["intermediates"].size(), 2u);
    }
}

TEST_F(SlowWhatIfCli, ASweepHasARunForEachSize) {
  const Json r =
      parse(home.run("whatif --chain 'relu > rmsnorm' --cols 128 --sweep rows=64,16 --executor sim --evals 1 --json"));
  expect_schema("whatif", r);
  ASSERT_EQ(r["sweep"]["runs"].size(), 2u);
  EXPECT_EQ(r["sweep"]["runs"][0]["size"], 16);
}

TEST_F(SlowWhatIfCli, OfSixteenCutsOfAttentionFifteenAreTimed) {
  const Json r = parse(home.run(
      "whatif attention --L 128 --d 64 --batch 1 --heads 2 --causal --evals 2 --executor sim --json --html page.html"));
  expect_schema("whatif", r);
  EXPECT_EQ(r["chain"], "qk > scale > mask > softmax > pv");
  ASSERT_EQ(r["partitions"].size(), 17u);  // the sixteen, and the whole chain by warpgroups
  EXPECT_EQ(r["parts"], 15);
  size_t timed = 0;
  for (const Json& p : r["partitions"]) {
    if (!p["time_us"].is_number()) {
      EXPECT_EQ(p["plan"], "qk+scale+mask+softmax | pv");
      EXPECT_NE(p["reason"].get<std::string>().find("a row reduction across CTAs"), std::string::npos) << p["reason"];
      continue;
    }
    ++timed;
    double sum = 0;
    for (const Json& k : p["kernels"]) {
      sum += k["time_us"].get<double>();
      EXPECT_GT(k["verification"]["rows_checked"], 0);
      EXPECT_LE(k["verification"]["error_over_tolerance"], 1.0);
    }
    EXPECT_NEAR(p["time_us"].get<double>() / sum, 1, 1e-9);
    EXPECT_EQ(p["kernels"].size(), p["intermediates"].size() + 1);
    const double product = r["floor"]["time_us"].get<double>() * p["waste"].get<double>() * p["idle"].get<double>() *
                           p["stall"].get<double>();
    EXPECT_NEAR(product / p["time_us"].get<double>(), 1, 1e-9);
  }
  EXPECT_EQ(timed, 16u);
  ASSERT_EQ(r["edges"].size(), 4u);
  for (const Json& e : r["edges"])
    for (const char* side : {"fused", "cut"})
      for (const Json& p : r["partitions"])
        if (p["plan"] == e.at(side)["plan"] && p["kernels"].size() > 1) {
          EXPECT_TRUE(p.contains("verified_together") && p["verified_together"]["passed"].get<bool>()) << p["plan"];
        }
  EXPECT_GT(fs::file_size(home.dir() / "page.html"), 100000u);
  // All results are stored, and the fused kernel is the same as in `tune`.
  const Json again =
      parse(home.run("whatif attention --L 128 --d 64 --batch 1 --heads 2 --causal --evals 2 --executor sim --json "
                     "--plan 'qk | scale | mask | softmax | pv'"));
  EXPECT_EQ(again["plan"]["plan"], "qk | scale | mask | softmax | pv");
  EXPECT_EQ(again["fresh"]["compiled"], 0);
  EXPECT_EQ(again["best"], r["best"]);
}

TEST_F(SlowWhatIfCli, WithoutAMaskThereIsNoStepForIt) {
  const std::string small = "whatif attention --L 128 --d 64 --batch 1 --heads 1 --evals 1 --executor sim --json";
  const Json r = parse(home.run(small));
  expect_schema("whatif", r);
  EXPECT_EQ(r["chain"], "qk > scale > softmax > pv");
  ASSERT_EQ(r["partitions"].size(), 9u);  // one is of warpgroups
  EXPECT_EQ(r["parts"], 10);
  size_t timed = 0;
  for (const Json& p : r["partitions"]) timed += p["time_us"].is_number();
  EXPECT_EQ(timed, 8u);
  EXPECT_NE(json_line(r["notes"]).find("step mask is left out"), std::string::npos);
  EXPECT_NE(json_line(r["notes"]).find("the keys are not split: kv_len=128 is too short"), std::string::npos);
  const Outcome plan = home.run(small + " --plan 'qk+scale+mask | softmax | pv'");
  EXPECT_EQ(plan.exit, 2);
  EXPECT_NE(plan.err.find("without --causal or --mask nothing is masked"), std::string::npos) << plan.err;
}

TEST_F(SlowWhatIfCli, SplitKeysAreAPartitionWhereSmsAreIdle) {
  const std::string small = "whatif attention --L 1 --kv-len 2048 --d 64 --batch 1 --heads 2 --evals 4 --executor sim ";
  const Json r = parse(home.run(small + "--json --html page.html"));
  expect_schema("whatif", r);
  const std::string plan = "qk+scale+softmax+pv merged16";
  EXPECT_EQ(r["best"], plan);
  ASSERT_TRUE(r.contains("split_keys"));
  EXPECT_EQ(r["split_keys"]["variant"], "merged16");
  EXPECT_GT(r["split_keys"]["gain_us"], 0);
  EXPECT_EQ(r["split_keys"]["whole"]["plan"], "qk+scale+softmax+pv warpgroup");  // the faster of two
  EXPECT_EQ(r["split_keys"]["parts"]["bytes"], 4 * 16 * 2 * (64 + 1));
  ASSERT_EQ(r["partitions"].size(), 14u);  // four are of warpgroups
  EXPECT_EQ(r["partitions"][0]["plan"], plan);
  EXPECT_EQ(r["partitions"][0]["kernels"].size(), 1u);
  const auto split = std::find_if(r["partitions"].begin(), r["partitions"].end(),
                                  [](const Json& p) { return p["plan"] == "qk+scale+softmax+pv split16 | combine"; });
  ASSERT_NE(split, r["partitions"].end());
  const Json& two = *split;
  ASSERT_EQ(two["kernels"].size(), 2u);
  EXPECT_EQ(two["kernels"][0]["name"], "partial");
  EXPECT_EQ(two["kernels"][1]["name"], "combine");
  EXPECT_NEAR(two["time_us"].get<double>() /
                  (two["kernels"][0]["time_us"].get<double>() + two["kernels"][1]["time_us"].get<double>()),
              1, 1e-9);
  for (const Json& p : {r["partitions"][0], two}) {
    EXPECT_TRUE(p["verified_together"]["passed"]) << p["plan"];
    EXPECT_GT(p["verified_together"]["rows_checked"], 0) << p["plan"];
  }
  for (const Json& e : r["edges"]) EXPECT_EQ(e["fused"]["plan"], plan);
  // The plan may be typed without its spaces; all results are stored.
  const Json again = parse(home.run(small + "--json --plan 'qk+scale+softmax+pv  merged16'"));
  EXPECT_EQ(again["plan"]["verdict"], "it is the fastest");
  EXPECT_EQ(again["fresh"]["evaluated"], 0);
  const Outcome near = home.run(small + "--plan 'qk+scale+softmax+pv split15|combine'");
  EXPECT_EQ(near.exit, 2);
  EXPECT_NE(near.err.find("did you mean \"qk+scale+softmax+pv split16 | combine\"?"), std::string::npos) << near.err;
}

TEST_F(SlowWhatIfCli, AFullDeviceSplitsNoKeys) {
  const std::string full = "whatif attention --L 128 --kv-len 512 --d 64 --batch 1 --heads 272 --executor sim ";
  const Json r = parse(home.run(full + "--evals 1 --json"));
  expect_schema("whatif", r);
  EXPECT_EQ(r["partitions"].size(), 9u);  // one is of warpgroups; so many rows have no even split
  EXPECT_FALSE(r.contains("split_keys"));
  const std::string why = "the keys are not split: the kernel of all steps fills the 132 SMs without it";
  EXPECT_NE(json_line(r["notes"]).find(why + " (272 CTAs)"), std::string::npos) << json_line(r["notes"]);
  const Outcome plan = home.run(full + "--plan 'qk+scale+softmax+pv split4 | combine'");
  EXPECT_EQ(plan.exit, 2);
  EXPECT_NE(plan.err.find(why), std::string::npos) << plan.err;
}

TEST_F(SlowWhatIfCli, ExpressionsAndLengthsOfAttentionAreCutLikeThePlainOne) {
  const Json r = parse(
      home.run("whatif attention --d 64 --heads 2 --lengths 70,129,33 --score 's + slope[h] * (k - q)' --arg "
               "slope:fp32[h] --mask 'q - k < 50' --softcap 20 --lse --dtype fp16 --evals 1 --executor sim --json"));
  expect_schema("whatif", r);
  size_t timed = 0;
  for (const Json& p : r["partitions"]) {
    timed += p["time_us"].is_number();
    if (!p["time_us"].is_number()) {
      EXPECT_EQ(p["plan"], "qk+scale+mask+softmax | pv") << p.value("reason", "");
    }
  }
  EXPECT_EQ(timed, 16u);  // with those of warpgroups: one kernel, and the keys split evenly
}

}  // namespace roofgen::test::whatif_test
