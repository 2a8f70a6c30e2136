// roofgen tune --suite: by one process, by shards, and by MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"

namespace roofgen::test::suite_test {
namespace {

using ::testing::HasSubstr;

/// Row kernels of different sizes: one or two evaluations each.
std::string suite_of(size_t problems) {
  Json suite{{"schema", "roofgen.suite.1"}, {"common", {{"evals", 2}, {"executor", "sim"}}}};
  for (size_t i = 0; i < problems; ++i)
    suite["problems"].push_back({{"op", i % 2 ? "rmsnorm" : "softmax"}, {"rows", 16}, {"cols", 128 + 64 * i}});
  return json_line(suite);
}

uint64_t rows_of(const Home& home) {
  sqlite3* db = nullptr;
  sqlite3_stmt* count = nullptr;
  uint64_t rows = 0;
  if (sqlite3_open((home.dir() / "data/evaluations.sqlite").c_str(), &db) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "SELECT count(*) FROM evaluation", -1, &count, nullptr) == SQLITE_OK &&
      sqlite3_step(count) == SQLITE_ROW)
    rows = static_cast<uint64_t>(sqlite3_column_int64(count, 0));
  sqlite3_finalize(count);
  sqlite3_close(db);
  return rows;
}

std::string without_fresh(const std::string& text) { return test::substituted(text, "\"fresh\": \\{[^}]*\\}", ""); }

/// Sums a member of `fresh` over the problems.
uint64_t fresh(const std::string& result, const char* member) {
  uint64_t sum = 0;
  const Json parsed = parse_json(result);
  for (const Json& p : parsed["problems"]) sum += p["result"]["fresh"][member].get<uint64_t>();
  return sum;
}
uint64_t evaluated(const std::string& result) { return fresh(result, "simulated"); }

/// How ranks of one machine are started, as root too; empty: no mpirun or a program without MPI.
std::string mpirun(int ranks) {
  if (std::system("command -v mpirun >/dev/null") != 0 ||
      !fs::exists(fs::path(ROOFGEN_PROGRAM).parent_path() / "libroofgen_mpi.so"))
    return "";
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none -n " +
         std::to_string(ranks);
}

class SuiteCli : public Compiling {};
using SlowSuiteCli = SuiteCli;

}  // namespace

TEST_F(SuiteCli, ShardsTogetherAreTheWhole) {
  home.write("suite.json", suite_of(5));
  const Outcome whole = home.run("tune --suite suite.json --json");
  ASSERT_EQ(whole.exit, 0) << whole.err;
  const Json result = parse_json(whole.out);
  ASSERT_EQ(result["problems"].size(), 5u);
  EXPECT_GE(evaluated(whole.out), 5u);
  const uint64_t rows = rows_of(home);
  Json parts = Json::array();
  for (const char* shard : {"1/2", "2/2"}) {
    const Outcome o = home.run(std::string("tune --suite suite.json --json --shard ") + shard);
    ASSERT_EQ(o.exit, 0) << o.err;
    const Json part = parse_json(o.out);
    EXPECT_EQ(evaluated(o.out), 0u) << "stored evaluations ran again";
    for (const Json& p : part["problems"]) parts.push_back(p);
  }
  EXPECT_EQ(parts.size(), 5u);
  EXPECT_EQ(rows_of(home), rows);
  const std::string text = home.run("tune --suite suite.json").out;
  EXPECT_THAT(text, HasSubstr("softmax --rows 16 --cols 128"));
}

TEST_F(SuiteCli, AProblemThatFailsDoesNotStopTheOthers) {
  home.write("suite.json", R"({"schema": "roofgen.suite.1", "common": {"evals": 1, "executor": "sim"}, "problems": [
    {"op": "softmax", "rows": 16, "cols": 128, "set": ["threads=7"]}, {"op": "softmax", "rows": 16, "cols": 128}]})");
  const Outcome o = home.run("tune --suite suite.json --json");
  EXPECT_EQ(o.exit, 1) << o.err;
  const Json result = parse_json(o.out);
  EXPECT_THAT(result["problems"][0]["error"].get<std::string>(), HasSubstr("no legal point"));
  EXPECT_FALSE(result["problems"][1].contains("error"));
}

TEST_F(SuiteCli, EveryProblemIsCheckedBeforeOneRuns) {
  home.write("suite.json",
             "{\"schema\": \"roofgen.suite.1\", \"problems\": [{\"op\": \"softmax\", \"rows\": 16, \"cols\": 128},\n"
             "  {\"op\": \"softmax\", \"rows\": 16, \"colls\": 128}]}");
  const Outcome o = home.run("tune --suite suite.json");
  EXPECT_EQ(o.exit, 2);
  EXPECT_THAT(o.err, HasSubstr("suite.json:2:3: error: unknown option --colls; did you mean --cols?"));
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(home.run("tune softmax --suite suite.json").exit, 2);
  EXPECT_EQ(home.run("tune --shard 1/2 softmax --rows 16 --cols 128").exit, 2);
  EXPECT_EQ(home.run("tune").exit, 2);
}

// The same bytes, the same number of evaluations, each in the store of rank 0.
void expect_the_work_of_one_process(const std::vector<int>& counts_of_ranks) {
  if (mpirun(2).empty()) GTEST_SKIP() << "no MPI";
  const Home one(Kernels::kOwn);
  one.write("suite.json", suite_of(4));
  const Outcome alone = one.run("tune --suite suite.json --json");
  ASSERT_EQ(alone.exit, 0) << alone.err;
  for (const int ranks : counts_of_ranks) {
    const Home other(Kernels::kOwn);
    other.write("suite.json", suite_of(4));
    const Outcome shared = other.run("tune --suite suite.json --json", mpirun(ranks));
    ASSERT_EQ(shared.exit, 0) << shared.err;
    EXPECT_EQ(without_fresh(shared.out), without_fresh(alone.out));
    EXPECT_EQ(evaluated(shared.out), evaluated(alone.out));
    // Some problems have candidates with one source, of which one rank compiles it.
    EXPECT_EQ(fresh(shared.out, "compiled"), fresh(alone.out, "compiled"));
    EXPECT_EQ(rows_of(other), rows_of(one));
  }
}

TEST_F(SuiteCli, RanksDoTheWorkOfOneProcess) { expect_the_work_of_one_process({2}); }
TEST_F(SlowSuiteCli, RanksDoTheWorkOfOneProcess) { expect_the_work_of_one_process({3, 4}); }

// A rank that dies ends the run. What was finished is in the store, and runs no second time.
TEST_F(SlowSuiteCli, ARankThatDiesLosesNothingThatWasFinished) {
  if (mpirun(2).empty()) GTEST_SKIP() << "no MPI";
  home.write("suite.json", suite_of(6));
  home.write("kill.sh",
             "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
             "mpirun --oversubscribe --bind-to none -n 3 sh -c '" ROOFGEN_PROGRAM
             " tune --suite suite.json --json & echo $! >pid.$OMPI_COMM_WORLD_RANK; wait $!' &\n"
             "for i in $(seq 600); do\n"
             "  grep -qsa rows_checked data/evaluations.sqlite-wal && break\n  sleep 0.05\ndone\nkill -KILL $(cat "
             "pid.1)\nwait\n");
  std::system((home.environment() + "sh kill.sh >killed.txt 2>&1 </dev/null").c_str());
  const uint64_t kept = rows_of(home);
  EXPECT_GT(kept, 0u);
  const Outcome again = home.run("tune --suite suite.json --json", mpirun(3));
  ASSERT_EQ(again.exit, 0) << again.err;
  const uint64_t all = rows_of(home);
  Home unbroken;
  unbroken.write("suite.json", suite_of(6));
  const Outcome whole = unbroken.run("tune --suite suite.json --json");
  EXPECT_EQ(without_fresh(again.out), without_fresh(whole.out));
  EXPECT_EQ(all, rows_of(unbroken));
  EXPECT_LT(evaluated(again.out), evaluated(whole.out));
}

}  // namespace roofgen::test::suite_test
