// Suites: their files, shards, and the queue from which ranks get problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tuner/session/request.h"
#include "tuner/session/suite/file.h"
#include "tuner/session/suite/queue.h"

namespace roofgen::test::suite_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Result<std::vector<SuiteProblem>> read(const std::string& text) { return read_suite(text, "s.json"); }

std::string error_of(const std::string& text) {
  const auto suite = read(text);
  return suite ? "" : to_string(suite.error());
}

/// Evaluations in memory.
struct Memory : Evaluations {
  std::map<std::string, std::string>& rows;
  std::vector<StoredTrial> noted;
  explicit Memory(std::map<std::string, std::string>& all) : rows(all) {}
  static std::string name(const StoreKey& k) { return k.binary + "|" + k.slice + "|" + k.simulator + "|" + k.device; }
  std::optional<std::string> lookup(const StoreKey& key) override {
    const auto row = rows.find(name(key));
    return row == rows.end() ? std::nullopt : std::optional(row->second);
  }
  void put(const StoreKey& key, const std::string& payload) override { rows[name(key)] = payload; }
  void note(const StoredTrial& trial) override { noted.push_back(trial); }
  Result<std::vector<StoredTrial>> trials(const TrialFilter& filter) override {
    if (filter.stage == "fails") return Error{Exit::kFailed, "no such table"};
    std::vector<StoredTrial> out;
    for (const StoredTrial& t : noted)
      if (t.variant == filter.variant && t.outcome == filter.outcome) out.push_back(t);
    return out;
  }
};

/// A rank whose questions a queue in the same process answers.
struct DirectRanks : Ranks {
  LocalQueue& queue;
  explicit DirectRanks(LocalQueue& other) : queue(other) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  int node_rank() const override { return 1; }
  int node_size() const override { return 2; }
  std::string ask(const std::string& question) override { return queue.answer(question); }
  void serve(const std::function<std::string(const std::string&)>&, const std::function<void()>&) override {}
};

}  // namespace

TEST(Suite, MembersAreFlags) {
  const auto suite = read(R"({"schema": "roofgen.suite.1", "common": {"evals": 4, "d": 64}, "problems": [
    {"op": "attention", "L": 128, "causal": true, "lse": false, "variant": ["fused", "warpgroup"]},
    {"op": "attention", "kv-lengths": [100, 8192], "d": 128, "scale": 0.5}]})");
  ASSERT_TRUE(suite) << to_string(suite.error());
  ASSERT_EQ(suite->size(), 2u);
  EXPECT_THAT((*suite)[0].flags, ElementsAre(Pair("--L", ElementsAre("128")), Pair("--causal", ElementsAre()),
                                             Pair("--variant", ElementsAre("fused", "warpgroup")),
                                             Pair("--evals", ElementsAre("4")), Pair("--d", ElementsAre("64"))));
  EXPECT_EQ(shell_words((*suite)[1].flags), "--kv-lengths 100,8192 --d 128 --scale 0.5 --evals 4");
}

TEST(Suite, WordsSurviveAShell) {
  EXPECT_EQ(shell_words({{"--epilogue", {"gelu(acc + bias[n])"}}, {"--score", {"s'"}}, {"--name", {""}}}),
            R"(--epilogue 'gelu(acc + bias[n])' --score 's'\''' --name '')");
}

TEST(Suite, ErrorsPointIntoTheFile) {
  const std::string head = "{\"schema\": \"roofgen.suite.1\",\n \"problems\": [";
  EXPECT_THAT(error_of(head + "{\"L\": 128}]}"), HasSubstr("s.json:2:15: error: a problem such as"));
  EXPECT_THAT(error_of(head + "{\"op\": \"gemm\", \"M\": {}}]}"), HasSubstr("s.json:2:31: error: a value of a flag"));
  EXPECT_THAT(error_of(head + "{\"op\": \"gemm\", \"--M\": 1}]}"), HasSubstr("without its hyphens"));
  EXPECT_THAT(error_of(head + "{\"op\": \"gemm\", \"arg\": [1, \"x\"]}]}"),
              HasSubstr("a list of strings or one of numbers"));
  EXPECT_THAT(error_of(head + "]}"), HasSubstr("at least one problem"));
  EXPECT_THAT(error_of(head), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("{\"schema\": \"roofgen.suite.2\", \"problems\": []}"), HasSubstr("s.json:1:"));
  EXPECT_THAT(error_of("{\"schema\": \"roofgen.suite.1\", \"problem\": []}"), HasSubstr("problem"));
}

TEST(Suite, CapturedLaunchesAreCountedByShape) {
  const auto problems = read_captured(
      "{\"op\":\"gemm\",\"M\":8,\"count\":2}\n\n{\"op\":\"map\",\"rows\":4,\"expr\":\"x\",\"count\":4}\n"
      "{\"op\":\"gemm\",\"M\":8,\"count\":3}\n{\"op\":\"gemm\",\"M\":9}",
      "c.jsonl");
  ASSERT_TRUE(problems) << to_string(problems.error());
  ASSERT_EQ(problems->size(), 3u);
  EXPECT_EQ((*problems)[0].op + shell_words((*problems)[0].flags), "gemm--M 8");
  EXPECT_EQ((*problems)[1].op + shell_words((*problems)[1].flags), "map--rows 4 --expr x");
  EXPECT_EQ((*problems)[2].op + shell_words((*problems)[2].flags), "gemm--M 9");
  EXPECT_EQ((*problems)[2].at.line, 5);
  const auto wrong = read_captured("{\"op\":\"gemm\"}\n{\"op\":}\n", "c.jsonl");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(to_string(wrong.error()), HasSubstr("c.jsonl:2:"));
  EXPECT_FALSE(read_captured("\n", "c.jsonl"));
}

/// The flags of `tune` by a request.
struct Tune {
  RequestFlags request{"tune"};
  ProblemFlags flags;
  RunFlags run;
  Result<void> read;
  explicit Tune(const SuiteProblem& problem) {
    flags.declare(request.flags());
    run.declare(request.flags());
    read = request.read(problem);
  }
};

TEST(Suite, OneProblemFillsTheFlagsOfARequest) {
  const auto problem = read_problem(
      R"({"op": "gemm", "M": 64, "alpha": -1, "arg": ["a:fp32[n]", "b:fp32"], "no-store": true})", "request");
  ASSERT_TRUE(problem) << to_string(problem.error());
  const Tune tune(*problem);
  ASSERT_TRUE(tune.read) << to_string(tune.read.error());
  const auto made = tune.flags.problem();
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->op, "gemm");
  EXPECT_EQ(made->dims.at("M"), 64);
  EXPECT_EQ(made->reals.at("alpha"), -1);
  EXPECT_EQ(made->args.size(), 2u);
  EXPECT_TRUE(tune.run.no_store);
  EXPECT_THAT(to_string(at(*problem, {Exit::kUsage, "wrong"})), HasSubstr("request:1:1: error: wrong"));
}

TEST(Suite, AWrongRequestIsAnErrorAtItsPlace) {
  for (const auto& [text, part] : {std::pair(R"({"op": "gemm", "L": [64], "M": 1})", ""),
                                   {R"({"op": "gemm", "evils": 3})", "unknown option --evils; did you mean --evals?"},
                                   {R"({"op": "gemm", "evals": -1})", "of at least 1"},
                                   {R"({"op": "gemm", "help": true})", "--help"}}) {
    const auto problem = read_problem(text, "request");
    ASSERT_TRUE(problem) << text;
    const Tune tune(*problem);
    if (!*part) {
      ASSERT_TRUE(tune.read) << text;  // a flag of another operator is an error of the problem, which names its op's
      EXPECT_FALSE(tune.flags.problem()) << text;
      continue;
    }
    ASSERT_FALSE(tune.read) << text;
    EXPECT_EQ(tune.read.error().where.line, 1) << text;
    EXPECT_THAT(tune.read.error().message, HasSubstr(part)) << text;
  }
}

TEST(Suite, ShardsAreAPartition) {
  for (size_t count = 1; count < 9; ++count) {
    std::vector<int> takers(50);
    for (size_t i = 1; i <= count; ++i)
      for (size_t p = 0; p < takers.size(); ++p) takers[p] += parse_shard(fmt::format("{}/{}", i, count))->has(p);
    EXPECT_EQ(takers, std::vector<int>(50, 1)) << count;
  }
  for (const char* wrong : {"", "1", "0/2", "3/2", "1/0", "1/2/3", "a/b", "-1/2", "1/ 2"})
    EXPECT_EQ(parse_shard(wrong).error().exit, Exit::kUsage) << wrong;
}

TEST(Suite, EachProblemIsGivenOutOnce) {
  std::map<std::string, std::string> rows;
  std::vector<size_t> problems(500);
  for (size_t i = 0; i < problems.size(); ++i) problems[i] = 2 * i;
  LocalQueue queue(
      problems, [&] { return std::make_unique<Memory>(rows); }, [] { return false; });
  DirectRanks ranks(queue);
  const auto remote = remote_queue(ranks);
  const auto work = [](SuiteQueue& at) {
    while (const auto p = at.next()) at.finish(*p, std::to_string(*p));
  };
  std::thread other([&] { work(*remote); });
  work(queue);
  other.join();
  const auto results = queue.results();
  ASSERT_EQ(results.size(), problems.size());
  for (const size_t p : problems) EXPECT_EQ(results.at(p), std::to_string(p));
}

TEST(Suite, AStoppedQueueGivesNothingOut) {
  bool stopped = false;
  LocalQueue queue(
      {0, 1, 2}, [] { return nullptr; }, [&] { return stopped; });
  DirectRanks ranks(queue);
  EXPECT_EQ(remote_queue(ranks)->next(), 0u);
  stopped = true;
  EXPECT_EQ(remote_queue(ranks)->next(), std::nullopt);
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST(Suite, RanksShareTheStoreOfTheQueue) {
  std::map<std::string, std::string> rows;
  LocalQueue queue(
      {}, [&] { return std::make_unique<Memory>(rows); }, [] { return false; });
  DirectRanks ranks(queue);
  const auto store = remote_queue(ranks)->store();
  const StoreKey key{"b", "a \"slice\"\n", "s", "d"}, absent{"b", "", "s", "d"};
  store->put(key, "{\"a\": \"\\u00e4\"}");
  EXPECT_EQ(store->lookup(key), "{\"a\": \"\\u00e4\"}");
  EXPECT_EQ(store->lookup(absent), std::nullopt);
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_EQ(queue.store()->lookup(key), store->lookup(key));
}

TEST(Suite, ATrialArrivesAsItWasSent) {
  std::map<std::string, std::string> rows;
  Memory* memory = nullptr;
  LocalQueue queue(
      {}, [&] { return std::unique_ptr<Evaluations>(memory = new Memory(rows)); }, [] { return false; });
  DirectRanks ranks(queue);
  StoredTrial sent;
  sent.op = "gemm", sent.problem = "gemm 'a'", sent.device = "h", sent.variant = "v", sent.stage = "s";
  sent.params = "{}", sent.binary = "b", sent.executor = "e", sent.origin = "model", sent.time_model = "event";
  sent.outcome = "verify", sent.reason = "wrong", sent.compiler = "c", sent.seconds = 1.0 / 3;
  remote_queue(ranks)->store()->note(sent);
  ASSERT_EQ(memory->noted.size(), 1u);
  EXPECT_EQ(memory->noted[0], sent);
}

TEST(Suite, TrialsComeFromTheQueue) {
  std::map<std::string, std::string> rows;
  auto memory = std::make_unique<Memory>(rows);
  for (int i = 0; i < 3; ++i) {
    StoredTrial& t = memory->noted.emplace_back();
    t.variant = "fused", t.outcome = StoredTrial::kVerified, t.params = std::to_string(i), t.seconds = 1e-6 * i;
  }
  memory->noted[1].outcome = "spill";
  const std::vector<StoredTrial> expected = {memory->noted[0], memory->noted[2]};
  LocalQueue queue(
      {}, [&]() -> std::unique_ptr<Evaluations> { return std::move(memory); }, [] { return false; });
  DirectRanks ranks(queue);
  const auto store = remote_queue(ranks)->store();
  TrialFilter filter;
  filter.variant = "fused";
  filter.outcome = StoredTrial::kVerified;
  const auto trials = store->trials(filter);
  ASSERT_TRUE(trials);
  EXPECT_EQ(*trials, expected);
  filter.variant = "other";
  EXPECT_TRUE(store->trials(filter)->empty());
  filter.stage = "fails";
  EXPECT_EQ(store->trials(filter).error().message, "no such table");
}

TEST(Suite, WithoutAStoreNoRankHasOne) {
  LocalQueue queue(
      {}, [] { return nullptr; }, [] { return false; });
  DirectRanks ranks(queue);
  EXPECT_EQ(remote_queue(ranks)->store(), nullptr);
}

}  // namespace roofgen::test::suite_test
