#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/json_text.h"
#include "tests/cli/killed.h"
#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

namespace roofgen::test::tune_test {

namespace {

const std::string kSmall = "tune attention --L 200 --d 64 --batch 1 --heads 2 --evals 3 --executor sim --json";

class TuneCli : public Compiling {};
using SlowTuneCli = TuneCli;

}  // namespace

TEST_F(TuneCli, JsonKeepsToItsSchema) {
  const Json result = parse(home.run(kSmall));
  expect_schema("tune", result);
  ASSERT_EQ(result["variants"].size(), 3u);
  for (const Json& v : result["variants"]) {
    // The whole grid runs for the winner alone.
    EXPECT_EQ(v["verified"], v["name"] == result["best_variant"]) << v["name"];
    EXPECT_NE(v["verified"], v["partly_verified"]) << v["name"];
    EXPECT_GT(v["verification"]["rows_checked"], 0);
    EXPECT_LE(v["verification"]["error_over_tolerance"], 1.0);
    for (const Json& k : v["kernels"]) {
      EXPECT_EQ(k["verification"]["ctas_run"], k["verification"]["ctas_total"]);
      EXPECT_GT(k["verification"]["launch_ctas_run"], 0);
      EXPECT_LE(k["verification"]["launch_ctas_run"], k["verification"]["launch_ctas_total"]);
      EXPECT_EQ(k["verification"]["inputs"], "normal, zero query, one-hot, growing scores");
      EXPECT_EQ(k["origins"]["time_us"], "model");
      // T = T_problem x waste x idle x stall, as documented.
      const double product = result["floor"]["time_us"].get<double>() * k["waste"].get<double>() *
                             k["idle"].get<double>() * k["stall"].get<double>();
      EXPECT_NEAR(product / k["time_us"].get<double>(), 1, 1e-9);
    }
  }
}

// wgmma is an instruction of sm_90a alone.
TEST_F(TuneCli, VariantsOfAnotherArchitectureAreNotForTheDevice) {
  for (const char* command : {"tune", "generate"}) {
    const Outcome o =
        home.run(std::string(command) + " gemm --M 64 --N 64 --K 64 --variant warpgroup --device a100-sxm-80");
    EXPECT_EQ(o.exit, 2) << command;
    EXPECT_NE(o.err.find("variant \"warpgroup\" is not for this problem on a100-sxm-80: its condition is sm_90a; there "
                         "are fused"),
              std::string::npos)
        << o.err;
  }
}
TEST_F(TuneCli, ArchChoosesBetweenPortableKernelsAndThoseOfOneArchitecture) {
  const std::string command = "generate gemm --M 64 --N 64 --K 64 --device h200-sxm --list --arch ";
  EXPECT_EQ(home.run(command + "sm_90").out.find("warpgroup"), std::string::npos);
  EXPECT_NE(home.run(command + "sm_90a").out.find("warpgroup"), std::string::npos);
}

// A row of C has 2^31 bytes: offsets within a row exceed an int.
TEST_F(TuneCli, TheWidestGemmIsVerifiedOnSlices) {
  const Json result =
      parse(home.run("tune gemm --M 8 --N 1073741824 --K 16 --variant fused --set BM=64,BN=64,store=staged --evals 1 "
                     "--executor sim --json"));
  ASSERT_EQ(result["variants"].size(), 1u);
  const Json& variant = result["variants"][0];
  EXPECT_FALSE(variant["verified"]);
  EXPECT_TRUE(variant["partly_verified"]);
  EXPECT_EQ(variant["verification"]["not_run"], Json{"whole grid not run: outputs and intermediates take 17.2 GB"});
}

// Pages beyond 2^32 elements; the slices are of the middle and the last sequences.
// The whole grid has few keys of each sequence, unless lengths are given.
// Shorter rows have fewer segments, and a table over q has no element without a key.
TEST_F(TuneCli, TheWholeGridRunsWhereAShorterSumIsAnotherGrid) {
  for (const char* problem :
       {"softmax --rows 2 --cols 70000 --variant split",
        "attention --L 96 --d 32 --batch 1 --heads 1 --variant fused --score 's + t[q]' --arg 't:fp32[q]'"}) {
    const Json result = parse(home.run(std::string("tune --json --evals 1 --executor sim ") + problem));
    const Json& v = result["variants"][0];
    EXPECT_TRUE(v["verified"]) << v["verification"];
    EXPECT_GT(v["verification"]["grid_ctas"], 0);
  }
}

Json tune_40_gib(const Home& home, const std::string& keys) {
  const Json result =
      parse(home.run("tune attention --L 1 --heads 64 --kv-heads 8 --d 128 --page 64 --variant fused "
                     "--evals 1 --executor sim --json " +
                     keys));
  EXPECT_EQ(result["variants"].size(), 1u);
  const Json& variant = result["variants"][0];
  EXPECT_EQ(variant["verification"]["launch_ctas_run"], 3);
  EXPECT_GE(variant["kernels"][0]["compulsory_bytes"], 42.9e9);  // less a few shared pages
  return variant;
}

TEST_F(SlowTuneCli, ACacheOf40GiBIsVerifiedOnSlices) {
  const Json equal = tune_40_gib(home, "--kv-len 32768 --batch 320");
  EXPECT_TRUE(equal["verified"]);
  EXPECT_EQ(equal["verification"]["grid"], "kv_len=144");
  EXPECT_EQ(equal["verification"]["grid_ctas"], 2560);
  std::string lengths = "--kv-lengths 32768";
  for (int i = 1; i < 320; ++i) lengths += ",32768";
  const Json ragged = tune_40_gib(home, lengths);
  EXPECT_TRUE(ragged["partly_verified"]);
  EXPECT_EQ(ragged["verification"]["not_run"], Json{"whole grid not run: it takes 344 GFLOPs"});
}

// A CTA of combine has heads of two groups.
TEST_F(SlowTuneCli, HeadsOfSeveralGroupsAreMergedTogether) {
  const Json result =
      parse(home.run("tune attention --L 1 --kv-len 300 --d 64 --batch 2 --heads 14 --kv-heads 2 --variant split3 "
                     "--set heads_per_cta=4 --evals 2 --executor sim --json"));
  EXPECT_TRUE(result["variants"][0]["verified"]) << result["variants"][0];
}

// Two stages of 64 keys do not fit into 99 KB.
TEST_F(SlowTuneCli, WideHeadsFitSmallSharedMemories) {
  const Json result = parse(
      home.run("tune attention --L 1 --kv-len 300 --d 256 --batch 1 --heads 4 --kv-heads 2 --rotary half --append "
               "--variant fused --device l4 --evals 1 --executor sim --json"));
  EXPECT_TRUE(result["variants"][0]["verified"]) << result["variants"][0];
}

TEST_F(TuneCli, EmptyTextsAndCachesOfPackedSequencesAreErrors) {
  const std::string job = "tune attention --L 1 --d 64 --executor sim ";
  for (const auto& [flags, message] :
       {std::pair{"--kv-lengths ''", "--kv-lengths is empty; expected: lengths of the caches"},
        {"--rotary ''", "--rotary is empty; expected: rotate Q and K"},
        {"--lengths 3,4 --page 16", "--lengths and --page: packed sequences have no cache; leave one out"},
        {"--lengths 3,4 --append", "--lengths and --append: packed sequences have no cache; leave one out"}}) {
    const Outcome o = home.run(job + flags);
    EXPECT_EQ(o.exit, 2) << flags;
    EXPECT_NE(o.err.find(message), std::string::npos) << o.err;
  }
}

TEST_F(TuneCli, SecondRunRemembersAndSaysTheSame) {
  const Outcome cold = home.run(kSmall), warm = home.run(kSmall);
  const Json again = parse(warm);
  EXPECT_EQ(again["fresh"]["compiled"], 0);
  EXPECT_EQ(again["fresh"]["simulated"], 0);
  EXPECT_EQ(without_fresh(cold.out), without_fresh(warm.out));
}

TEST_F(TuneCli, TwoHomesGiveTheSameBytes) {
  const Home one(Kernels::kOwn), other(Kernels::kOwn);
  const std::string job = "tune attention --L 64 --d 64 --batch 1 --heads 1 --evals 2 --executor sim --json --jobs ";
  EXPECT_EQ(one.run(job + "1").out, other.run(job + "3").out);
}

TEST_F(TuneCli, EditedBandwidthChangesTimesWithoutCompilingOrSimulating) {
  const Json before = parse(home.run(kSmall));
  Json device = parse_json(home.read(ROOFGEN_SOURCE_DIR "/roofline/devices/h200-sxm.json"));
  for (const char* cell : {"dram_gb_s", "dram_sustained_gb_s", "l2_gb_s", "l2_sustained_gb_s"})
    device["cells"][cell]["value"] = device["cells"][cell]["value"].get<double>() / 100;
  home.write("mine/devices/h200-sxm.json", json_line(device));
  const Json after = parse(home.run(kSmall + " --data-dir mine"));
  EXPECT_EQ(after["fresh"]["compiled"], 0);
  EXPECT_EQ(after["fresh"]["simulated"], 0);
  EXPECT_GT(after["floor"]["time_us"], before["floor"]["time_us"]);
  EXPECT_GT(after["variants"][1]["time_us"], before["variants"][1]["time_us"]);
}

TEST_F(TuneCli, PinsSelectAndTheWinnerHasThem) {
  const Json result =
      parse(home.run("tune attention --L 128 --d 64 --batch 1 --heads 1 --executor sim --variant fused --set "
                     "BM=64,stages=2 --evals 2 --json"));
  ASSERT_EQ(result["variants"].size(), 1u);
  EXPECT_EQ(result["variants"][0]["kernels"][0]["schedule"]["params"]["BM"], 64);
  EXPECT_EQ(result["variants"][0]["kernels"][0]["schedule"]["params"]["stages"], 2);
  EXPECT_EQ(result["verdict"]["decision"], "fused only");
  EXPECT_EQ(result["verdict"]["reason"], "unfused was not tried (--variant)");
  ASSERT_EQ(result["untried"].size(), 3u);
  EXPECT_EQ(result["untried"][0]["name"], "unfused");
  EXPECT_EQ(result["untried"][0]["because"], "not tried (--variant)");
  EXPECT_EQ(result["untried"][1]["name"], "warpgroup");
  EXPECT_EQ(result["untried"][2]["name"], "fused");
  EXPECT_EQ(result["untried"][2]["because"], "not tried (--set)");
  EXPECT_EQ(result["untried"][2]["ctas"], 1);  // BM = 128 by default
}

TEST_F(SlowTuneCli, AKilledRunKeepsFinishedResults) {
  const std::string job = "tune attention --L 128 --d 64 --batch 1 --heads 1 --executor sim --evals 3 --json";
  const Outcome killed = home.run_and_signal(job, "KILL");
  ASSERT_EQ(killed.exit, 137) << killed.err;
  const Outcome resumed = home.run(job);
  EXPECT_LT(parse(resumed)["fresh"]["simulated"], parse(resumed)["simulated"]);
  const Home fresh;
  EXPECT_EQ(without_fresh(fresh.run(job).out), without_fresh(resumed.out));
}

TEST_F(TuneCli, InterruptReportsAndKeepsFinishedResults) {
  const std::string job = "tune attention --L 128 --d 64 --batch 1 --heads 1 --executor sim --evals 6 --json";
  const Outcome interrupted = home.run_and_signal(job, "INT");
  EXPECT_EQ(interrupted.exit, 130) << interrupted.err;
  const Json report = parse_json(interrupted.out);
  ASSERT_FALSE(report.is_discarded()) << interrupted.out;
  EXPECT_EQ(report["interrupted"], true);
  EXPECT_GT(report["simulated"], 0);
  const Json resumed = parse(home.run(job));
  EXPECT_LT(resumed["fresh"]["simulated"], resumed["simulated"]);
}

TEST_F(TuneCli, AFullOutputIsAnErrorNotACrash) { EXPECT_EQ(home.run("doctor >/dev/full #").exit, 1); }

// A worker's pipe or memory under the number of a standard stream is not what the worker expects there.
TEST_F(TuneCli, ClosedStandardStreamsHarmNothing) {
  const Outcome o = home.run("tune rmsnorm --rows 8 --cols 64 --evals 1 <&- >out.txt 2>err.txt #");
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.err.find("warning: no GPU"), std::string::npos) << o.err;
  EXPECT_EQ(home.run("devices 2>err.txt >&- #").exit, 1);
}

TEST_F(TuneCli, UnwritableCacheAndStoreAreWarnings) {
  home.write("blocked", "a file where a directory is wanted");
  const Outcome o = home.run("tune attention --L 64 --d 64 --batch 1 --heads 1 --executor sim --evals 4 --json",
                             "env ROOFGEN_CACHE_DIR=" + (home.dir() / "blocked").string() +
                                 " ROOFGEN_DATA_HOME=" + (home.dir() / "blocked").string());
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_NE(o.err.find("warning"), std::string::npos) << o.err;
  EXPECT_FALSE(parse_json(o.out).is_discarded());
}

TEST_F(TuneCli, MinScoreHasItsExitCode) {
  EXPECT_EQ(home.run("tune attention --L 64 --d 64 --batch 1 --heads 1 --executor sim --evals 4 --min-score 1").exit,
            4);
}

TEST_F(SlowTuneCli, AVariantTooBigForMemoryIsRejectedByName) {
  const Json result =
      parse(home.run("tune attention --L 1024 --d 32 --batch 4096 --heads 32 --executor sim --evals 1 --json"));
  EXPECT_EQ(result["verdict"]["decision"], "fused only");
  EXPECT_NE(result["verdict"]["reason"].get<std::string>().find("with S and P need"), std::string::npos);
  EXPECT_EQ(result["rejected"]["memory"], 1);
}

// The schedules of the nearest problem come first; other settings, and trials of other tools, do not count.
TEST_F(SlowTuneCli, AWarmStartTriesTheSchedulesOfANearProblem) {
  const std::string of = "tune softmax --executor sim --evals 8 --json --cols 1024 --rows ";
  EXPECT_FALSE(parse(home.run(of + "8")).contains("warm_starts")) << "the store is empty";
  EXPECT_TRUE(parse(home.run(of + "64")).contains("warm_starts"));
  EXPECT_FALSE(parse(home.run(of + "128 --dtype fp16")).contains("warm_starts"));
  const auto mark = [&](const std::string& from, const std::string& to) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((home.dir() / "data/evaluations.sqlite").c_str(), &db), SQLITE_OK);
    const std::string update = "UPDATE trial SET source = '" + to + "' WHERE source = '" + from + "'";
    EXPECT_EQ(sqlite3_exec(db, update.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    EXPECT_GT(sqlite3_changes(db), 0);
    sqlite3_close(db);
  };
  mark("roofgen", "T4");
  EXPECT_FALSE(parse(home.run(of + "512")).contains("warm_starts"));
  mark("T4", "roofgen");
  const Outcome first = home.run(of + "128");
  const Json warm = parse(first);
  EXPECT_EQ(warm["warm_starts"], parse_json(R"([{"problem": "softmax bf16 cols=1024 rows=64", "device": "h200-sxm",
                                                  "candidates": 1}])"));
  EXPECT_GT(warm["fresh"]["evaluated"], 0) << "nothing is trusted";
  EXPECT_EQ(without_fresh(first.out), without_fresh(home.run(of + "128").out));
  EXPECT_FALSE(parse(home.run(of + "128 --cold")).contains("warm_starts"));
}

TEST_F(SlowTuneCli, AnEffortSetsTheNumberOfCandidates) {
  const std::string of = "tune softmax --rows 64 --cols 256 --variant fused --executor sim --json ";
  const Json none = parse(home.run(of + "--effort none")), quick = parse(home.run(of + "--effort quick")),
             same = parse(home.run(of));
  EXPECT_LE(none["compiled"], 2) << "one kernel, two candidates";
  EXPECT_EQ(none["ended"], "all evaluations done");
  EXPECT_GT(quick["compiled"], none["compiled"]);
  EXPECT_EQ(quick["compiled"], same["compiled"]);
  for (const auto& [flags, message] :
       {std::pair{"--effort lots", "unknown --effort \"lots\""},
        {"--effort none --strategy random", "--effort none tries the best of the prior alone; leave --strategy random"},
        {"--effort full --evals 3", "--evals"},
        {"--until 0", "--until"},
        {"--launches 0", "--launches"}}) {
    const Outcome o = home.run(of + flags);
    EXPECT_EQ(o.exit, 2) << flags;
    EXPECT_NE(o.err.find(message), std::string::npos) << o.err;
  }
}

TEST_F(TuneCli, ASearchEndsWhenItIsGoodEnoughOrCannotPay) {
  const std::string of = "tune softmax --rows 64 --cols 1024 --executor sim --evals 8 --json ";
  const Json all = parse(home.run(of)), good = parse(home.run(of + "--until 0.5")),
             never = parse(home.run(of + "--until 2"));
  EXPECT_EQ(all["ended"], "all evaluations done");
  EXPECT_EQ(good["ended"], "the score has reached --until");
  EXPECT_GE(good["score"].get<double>(), 0.45) << "by the better model";
  EXPECT_LT(good["compiled"], all["compiled"]);
  EXPECT_EQ(never["ended"], "all evaluations done");
  EXPECT_EQ(never["compiled"], all["compiled"]);
  // What is remembered takes no time: only a cold store shows the end.
  const Home other(Kernels::kOwn), third(Kernels::kOwn);
  const Json once = parse(other.run(of + "--launches 1"));
  EXPECT_EQ(once["ended"], "the rest cannot pay within --launches");
  EXPECT_EQ(once["compiled"], 1);
  EXPECT_EQ(parse(third.run(of + "--launches 1e15"))["ended"], "all evaluations done");
}

// A parameter that no expression and no template reads gives each kernel twice.
TEST_F(TuneCli, EqualKernelsRunOnce) {
  Json rows = parse_json(without_comments(home.read(ROOFGEN_SOURCE_DIR "/search_spaces/stages/rows.json")));
  rows["params"].push_back({{"name", "nothing"}, {"values", {1, 2, 3}}, {"default", "1"}});
  home.write("mine/search_spaces/stages/rows.json", json_line(rows));
  const std::string job =
      "tune softmax --rows 64 --cols 1024 --executor sim --exhaustive --json --data-dir mine --set "
      "vec=8,row_threads=128,threads=128,rows_each=1,residency=registers";
  for (const char* store : {" --no-store", ""}) {
    const Json result = parse(home.run(job + store));
    EXPECT_GT(result["compiled"], 0);
    EXPECT_EQ(result["compiled"].get<int>() % 3, 0);
    EXPECT_EQ(3 * result["fresh"]["evaluated"].get<int>(), result["compiled"].get<int>()) << store;
  }
}

}  // namespace roofgen::test::tune_test
