// A tuning run that is killed, and two that run at once.
#include "tests/cli/killed.h"

#include <thread>

#include "base/json.h"

namespace roofgen::test::killed_test {

namespace {

const char* const kJob = "tune rmsnorm --rows 64 --cols 256 --executor sim --evals 6 --json";

}  // namespace

TEST(Killed, NothingIsLostAndNothingRunsTwice) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  expect_to_survive(kJob, 4, 1, Kernels::kOfAllTests);
}

// A row for each evaluation and each trial, and one result, whoever was first.
TEST(SlowKilled, TwoProcessesThatTuneOneProblemShareTheStore) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const Home alone, home;
  const Outcome expected = alone.run(kJob);
  ASSERT_EQ(expected.exit, 0) << expected.err;
  const std::string command = home.environment() + "for i in 1 2; do " ROOFGEN_PROGRAM " " + kJob +
                              " >out$i.txt 2>err$i.txt </dev/null & done; wait";
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const char* i : {"1", "2"}) {
    EXPECT_EQ(without_fresh(home.read("out" + std::string(i) + ".txt")), without_fresh(expected.out))
        << home.read("err" + std::string(i) + ".txt");
    EXPECT_EQ(home.read("err" + std::string(i) + ".txt").find("store"), std::string::npos);
  }
  const auto rows = [](const Home& of) { return parse_json(of.run("db list --json").out); };
  EXPECT_EQ(rows(home), rows(alone));
}

/// `job` twice at once. The first process is killed as soon as the shell finds `kills` true; empty: never.
void run_twice(const Home& home, const std::string& job, const std::string& kills) {
  const std::string command = home.environment() + "for i in 2 1; do " ROOFGEN_PROGRAM " " + job +
                              " >out$i.txt 2>err$i.txt </dev/null & done; first=$!; " +
                              (kills.empty() ? "" : "until " + kills + "; do sleep 0.01; done; kill -9 $first && ") +
                              "wait";
  EXPECT_EQ(std::system(command.c_str()), 0);
  if (!kills.empty()) {
    EXPECT_EQ(home.read("out1.txt"), "") << "it ended before it was killed";
  }
}

/// Of both processes.
int sum_of(const Home& home, const char* member) {
  int sum = 0;
  for (const char* name : {"out1.txt", "out2.txt"}) sum += parse_json(home.read(name))["fresh"][member].get<int>();
  return sum;
}

// Of two processes each evaluation runs in one, also after one of them was killed in the middle.
TEST(Killed, TwoProcessesSplitTheEvaluations) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const std::string job = "tune rmsnorm --rows 64 --cols 256 --executor sim --evals 12 --jobs 1 --json";
  const Home alone;
  const Outcome expected = alone.run(job);
  ASSERT_EQ(expected.exit, 0) << expected.err;
  const int simulated = parse_json(expected.out)["fresh"]["simulated"].get<int>();
  for (const bool kills : {false, true}) {
    const Home home;
    const CountedStore store(home);
    run_twice(home, job, kills ? "grep -qsa rows_checked data/evaluations.sqlite-wal" : "");
    EXPECT_EQ(without_fresh(home.read("out2.txt")), without_fresh(expected.out)) << home.read("err2.txt");
    EXPECT_EQ(store.written(), store.different()) << "an evaluation ran twice";
    if (kills) continue;
    EXPECT_EQ(without_fresh(home.read("out1.txt")), without_fresh(expected.out)) << home.read("err1.txt");
    EXPECT_EQ(sum_of(home, "simulated"), simulated);
  }
}

// With an empty cache each source is compiled by one process, and the other one takes its binary.
TEST(SlowKilled, TwoProcessesSplitTheCompilations) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const std::string job = "tune rmsnorm --rows 64 --cols 256 --executor sim --evals 12 --jobs 1 --json";
  const Home alone(Kernels::kOwn), home(Kernels::kOwn);
  const Outcome expected = alone.run(job);
  ASSERT_EQ(expected.exit, 0) << expected.err;
  const Json fresh = parse_json(expected.out)["fresh"];
  run_twice(home, job, "");
  for (const std::string i : {"1", "2"})
    EXPECT_EQ(without_fresh(home.read("out" + i + ".txt")), without_fresh(expected.out))
        << home.read("err" + i + ".txt");
  EXPECT_EQ(sum_of(home, "compiled"), fresh["compiled"]);
  EXPECT_EQ(sum_of(home, "simulated"), fresh["simulated"]);
}

// A killed process leaves no claim: the other one compiles the source that it had.
TEST(Killed, TheCompilationsOfAKilledProcessAreFree) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const Home alone, home(Kernels::kOwn);
  const Outcome expected = alone.run(kJob);
  ASSERT_EQ(expected.exit, 0) << expected.err;
  run_twice(home, kJob, "ls cache/v1/*/*/meta.json >/dev/null 2>&1");
  EXPECT_EQ(without_fresh(home.read("out2.txt")), without_fresh(expected.out)) << home.read("err2.txt");
}

TEST(Killed, ADamagedStoreIsRebuiltAndTheResultIsTheSame) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const Home home;
  const Outcome expected = home.run(kJob);
  ASSERT_EQ(expected.exit, 0) << expected.err;
  std::string bytes = home.read("data/evaluations.sqlite");
  // Pages 2 and 3 hold roots of tables, which every run reads.
  for (size_t i = 4096; i < 3 * 4096; ++i) bytes[i] = '\x5a';
  home.write("data/evaluations.sqlite", bytes);
  const Outcome again = home.run(kJob);
  EXPECT_EQ(without_fresh(again.out), without_fresh(expected.out));
  EXPECT_NE(again.err.find("was damaged"), std::string::npos) << again.err;
  EXPECT_EQ(home.read("data/evaluations.damaged-1.sqlite"), bytes);
  const Outcome third = home.run(kJob);
  EXPECT_EQ(without_fresh(third.out), without_fresh(expected.out));
  EXPECT_EQ(third.err.find("was damaged"), std::string::npos) << third.err;
}

TEST(SlowKilled, FailedCandidatesAreTrialsAndAreNotTriedAgain) {
  if (!has_nvrtc(Home())) GTEST_SKIP() << "no NVRTC";
  const Home home;
  std::ifstream in(ROOFGEN_SOURCE_DIR "/templates/rows/rows.cu.jinja");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto plant = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  plant("constexpr int kVec = {{ vec }};",
        "constexpr int kVec = {{ vec }};\n{% if rows_each == 2 %}\n#error planted\n{% endif %}");
  plant("= s_{{ name }};", "= {% if rows_each == 4 %}0.0f{% else %}s_{{ name }}{% endif %};");
  home.write("planted/templates/rows/rows.cu.jinja", text);
  const std::string job =
      "tune rmsnorm --rows 64 --cols 1024 --variant fused --set vec=8 --set threads=128 --exhaustive --executor sim "
      "--data-dir planted --json";
  const Outcome first = home.run(job);
  ASSERT_EQ(first.exit, 0) << first.err;
  std::map<std::string, int> outcomes;
  const Json shown = parse_json(home.run("db show rmsnorm --json").out);
  for (const Json& t : shown["trials"]) {
    const auto outcome = t["outcome"].get<std::string>();
    ++outcomes[outcome];
    const int rows_each = t["params"]["rows_each"].get<int>();
    EXPECT_EQ(outcome, rows_each == 1 ? "verified" : rows_each == 2 ? "compile" : "verify");
    EXPECT_EQ(t["op"], "rmsnorm");
    EXPECT_EQ(t["source"], "roofgen");
    EXPECT_EQ(t["compiler"].get<std::string>().find('/'), std::string::npos);
    EXPECT_EQ(outcome == "verified", t["seconds"].is_number() && t["origin"] == "model");
    EXPECT_EQ(outcome == "verified", !t.contains("reason"));
  }
  EXPECT_GT(outcomes["verified"], 0);
  EXPECT_GT(outcomes["compile"], 0);
  EXPECT_GT(outcomes["verify"], 0);
  const Outcome again = home.run(job);
  EXPECT_EQ(without_fresh(again.out), without_fresh(first.out));
  const Json fresh = parse_json(again.out)["fresh"];
  EXPECT_EQ(fresh["compiled"], 0);
  EXPECT_EQ(fresh["simulated"], 0);
}

}  // namespace roofgen::test::killed_test
