// The evaluation store: persistence through kills, other processes, damage and other versions.
#include "tuner/store/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <random>

#include "tests/runtime/process.h"
#include "tuner/store/schema.h"

namespace roofgen::store_test {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::write_text;

StoreKey key(int number) { return {"binary " + std::to_string(number), "slice", "sim 1", "h200"}; }

StoredTrial trial(int number, const std::string& problem = "gemm bf16 K=64 M=8 N=8") {
  StoredTrial t;
  t.op = problem.substr(0, problem.find(' '));
  t.problem = problem;
  t.device = "H200 SXM";
  t.variant = t.stage = "gemm";
  t.params = "{\"BM\":" + std::to_string(number) + "}";
  t.binary = "binary " + std::to_string(number);
  t.executor = "sim 1";
  t.outcome = StoredTrial::kVerified;
  t.seconds = 1e-3 / (number + 1);
  t.origin = "model";
  t.time_model = "interval model";
  return t;
}

class StoreTest : public ::testing::Test {
 protected:
  Store open(const std::string& name = "sub/dir/evaluations.sqlite") {
    auto made = Store::open(dir / name, [this](const std::string& line) { warnings.push_back(line); });
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }
  void sql(const std::string& name, const char* text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((dir / name).c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  TempDir dir;
  std::vector<std::string> warnings;
};

TEST_F(StoreTest, KeepsPayloadsByTheWholeKey) {
  Store store = open();
  EXPECT_FALSE(store.lookup(key(1)));
  std::string payload("{\"counts\": \xc3\xa4 '; DROP TABLE evaluation; --\0 after}", 50);
  store.put(key(1), payload);
  EXPECT_EQ(store.lookup(key(1)), payload);
  for (auto part : {&StoreKey::binary, &StoreKey::slice, &StoreKey::simulator, &StoreKey::device}) {
    StoreKey other = key(1);
    other.*part += "x";
    EXPECT_FALSE(store.lookup(other));
    store.put(other, "other");
    EXPECT_EQ(store.lookup(other), "other");
  }
  EXPECT_EQ(store.lookup(key(1)), payload);
  store.put(key(1), "");
  EXPECT_EQ(store.lookup(key(1)), "");
  Store moved = std::move(store);
  EXPECT_EQ(open().lookup(key(1)), "");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, KeepsEarlierRowsWhenKilledWhileWriting) {
  for (int round = 0; round < 5; ++round) {
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    pid_t child = fork();
    if (child == 0) {
      Store store = open();
      for (int i = 0;; ++i) {
        store.put(key(round * 1'000'000 + i), std::string(5000, 'p') + std::to_string(i));
        if (write(acknowledged[1], &i, sizeof i) != sizeof i) _exit(1);
      }
    }
    close(acknowledged[1]);
    int last = -1;
    while (last < 50 + round * 37 && read(acknowledged[0], &last, sizeof last) == sizeof last) {
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (read(acknowledged[0], &last, sizeof last) == sizeof last) {
    }
    close(acknowledged[0]);
    ASSERT_GE(last, 50);
    Store store = open();
    for (int i = 0; i <= last; ++i)
      ASSERT_EQ(store.lookup(key(round * 1'000'000 + i)), std::string(5000, 'p') + std::to_string(i)) << i;
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, ManyProcessesMakeAndWriteOneFile) {
  constexpr int kProcesses = 8, kRows = 50;
  std::vector<pid_t> children;
  for (int c = 0; c < kProcesses; ++c) {
    pid_t child = fork();
    if (child == 0) {
      Store store = open();
      for (int i = 0; i < kRows; ++i) store.put(key(c * 1000 + i), std::to_string(c));
      _exit(warnings.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Store store = open();
  for (int c = 0; c < kProcesses; ++c)
    for (int i = 0; i < kRows; ++i) EXPECT_EQ(store.lookup(key(c * 1000 + i)), std::to_string(c));
}

TEST_F(StoreTest, ManyThreadsShareOneStore) {
  Store store = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 100; ++i) {
        store.put(key(t * 1000 + i), std::to_string(i));
        EXPECT_EQ(store.lookup(key(t * 1000 + i)), std::to_string(i));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsKeptAsideAndReplaced) {
  write_text(dir / "garbage.sqlite", std::string(10'000, 'g'));
  const auto as_it_is = Store::open(dir / "garbage.sqlite", {}, Store::Damage::kAsItIs);
  ASSERT_FALSE(as_it_is);
  EXPECT_NE(as_it_is.error().message.find("cannot be used: file is not a database"), std::string::npos);
  EXPECT_EQ(testing::read_text(dir / "garbage.sqlite"), std::string(10'000, 'g'));
  open("garbage.sqlite").put(key(1), "new");
  EXPECT_EQ(open("garbage.sqlite").lookup(key(1)), "new");
  EXPECT_EQ(testing::read_text(dir / "garbage.damaged-1.sqlite"), std::string(10'000, 'g'));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("was damaged (file is not a database): 0 evaluations"), std::string::npos) << warnings[0];
}

TEST_F(StoreTest, UnwritablePlaceIsAnError) {
  write_text(dir / "file", "");
  auto made = Store::open(dir / "file/below/evaluations.sqlite");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit, Exit::kFailed);
}

TEST_F(StoreTest, DamagedPagesCostTheirRowsAlone) {
  constexpr int kRows = 200;
  {
    Store store = open("evaluations.sqlite");
    for (int i = 0; i < kRows; ++i) store.put(key(i), std::string(2000, 'p') + std::to_string(i));
    for (int i = 0; i < kRows; ++i) store.note(trial(i));
  }
  std::string bytes = testing::read_text(dir / "evaluations.sqlite");
  ASSERT_GT(bytes.size(), 100'000u) << "the log was not folded in";
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 20'000; ++i) bytes[i] = static_cast<char>(0xee);
  write_text(dir / "evaluations.sqlite", bytes);
  int found = 0;
  {
    Store store = open("evaluations.sqlite");
    for (int i = 0; i < kRows; ++i)
      if (const auto payload = store.lookup(key(i))) {
        EXPECT_EQ(*payload, std::string(2000, 'p') + std::to_string(i));
        ++found;
      }
    for (int i = 0; i < kRows; ++i) store.put(key(1000 + i), "new");
    EXPECT_EQ(store.lookup(key(1000)), "new");
  }
  EXPECT_GT(found, kRows / 2);
  EXPECT_LT(found, kRows);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("was damaged"), std::string::npos) << warnings[0];
  EXPECT_EQ(testing::read_text(dir / "evaluations.damaged-1.sqlite"), bytes);
}

TEST_F(StoreTest, AChangedByteNeverChangesAPayload) {
  constexpr int kRows = 40;
  const auto payload = [](int i) { return "{\"counts\": " + std::string(700, static_cast<char>('0' + i % 10)) + "}"; };
  {
    Store store = open("sound.sqlite");
    for (int i = 0; i < kRows; ++i) store.put(key(i), payload(i));
  }
  const std::string sound = testing::read_text(dir / "sound.sqlite");
  std::mt19937 random(7);
  int lost = 0;
  for (int round = 0; round < 40; ++round) {
    TempDir place;
    std::string bytes = sound;
    char& byte = bytes[random() % bytes.size()];
    byte = static_cast<char>(byte ^ (1 << random() % 8));
    write_text(place / "s.sqlite", bytes);
    auto store = Store::open(place / "s.sqlite");
    ASSERT_TRUE(store) << to_string(store.error());
    for (int i = 0; i < kRows; ++i) {
      const auto found = store->lookup(key(i));
      lost += !found;
      EXPECT_EQ(found.value_or(payload(i)), payload(i)) << round;
      store->put(key(i), payload(i));
      EXPECT_EQ(store->lookup(key(i)), payload(i)) << round;
    }
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 40 * kRows / 2);
}

TEST_F(StoreTest, ManyProcessesRepairOneFileOnce) {
  {
    Store store = open("evaluations.sqlite");
    for (int i = 0; i < 100; ++i) store.put(key(i), std::string(2000, 'p'));
  }
  std::string bytes = testing::read_text(dir / "evaluations.sqlite");
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 9000; ++i) bytes[i] = static_cast<char>(0xee);
  write_text(dir / "evaluations.sqlite", bytes);
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      Store store = open("evaluations.sqlite");
      for (int i = 0; i < 100; ++i) store.lookup(key(i));
      store.put(key(1000 + c), "new");
      _exit(static_cast<int>(warnings.size()));
    }
    children.push_back(child);
  }
  int repairs = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    repairs += WEXITSTATUS(status);
  }
  EXPECT_EQ(repairs, 1);
  EXPECT_TRUE(fs::exists(dir / "evaluations.damaged-1.sqlite"));
  EXPECT_FALSE(fs::exists(dir / "evaluations.damaged-2.sqlite"));
  Store store = open("evaluations.sqlite");
  for (int c = 0; c < 8; ++c) EXPECT_EQ(store.lookup(key(1000 + c)), "new");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, FullDiskWarnsOnceAndKeepsEarlierRows) {
  open("evaluations.sqlite").put(key(1), "before");
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    Store store = open("evaluations.sqlite");
    rlimit limit{50'000, 50'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 2; i < 10; ++i) store.put(key(i), std::string(100'000, 'p'));
    bool known = store.lookup(key(1)) == "before";
    _exit(warnings.size() == 1 && known ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(open("evaluations.sqlite").lookup(key(1)), "before");
}

TEST_F(StoreTest, OtherSchemaVersionIsLeftAloneAndASiblingUsed) {
  sql("evaluations.sqlite", "CREATE TABLE future (x); INSERT INTO future VALUES (1); PRAGMA user_version=7");
  std::string before = testing::read_text(dir / "evaluations.sqlite");
  open("evaluations.sqlite").put(key(1), "mine");
  EXPECT_EQ(open("evaluations.sqlite").lookup(key(1)), "mine");
  EXPECT_EQ(testing::read_text(dir / "evaluations.sqlite"), before);
  EXPECT_TRUE(fs::exists(dir / "evaluations.v2.sqlite"));
}

TEST_F(StoreTest, RowsOfTheFirstSchemaAreKept) {
  sql("evaluations.sqlite",
      "CREATE TABLE evaluation (binary TEXT NOT NULL, slice TEXT NOT NULL, simulator TEXT NOT NULL, device TEXT NOT "
      "NULL, payload TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (binary, slice, "
      "simulator, device)); INSERT INTO evaluation (binary, slice, simulator, device, payload) VALUES ('binary 1', "
      "'slice', 'sim 1', 'h200', 'old'); PRAGMA user_version=1");
  Store store = open("evaluations.sqlite");
  EXPECT_EQ(store.lookup(key(1)), "old");
  store.put(key(2), "new");
  store.note(trial(1));
  Store again = open("evaluations.sqlite");
  EXPECT_EQ(again.lookup(key(1)), "old");
  EXPECT_EQ(again.lookup(key(2)), "new");
  EXPECT_EQ(again.trials({})->size(), 1u);
  EXPECT_FALSE(fs::exists(dir / "evaluations.v2.sqlite"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, ADamagedFileOfTheFirstSchemaIsRepairedToo) {
  sql("evaluations.sqlite",
      "CREATE TABLE evaluation (binary TEXT NOT NULL, slice TEXT NOT NULL, simulator TEXT NOT NULL, device TEXT NOT "
      "NULL, payload TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (binary, slice, "
      "simulator, device)); INSERT INTO evaluation (binary, slice, simulator, device, payload) VALUES ('binary 1', "
      "'slice', 'sim 1', 'h200', 'old'); PRAGMA user_version=1");
  const auto repaired = store::repair(dir / "evaluations.sqlite", store::FileIdentity::of(dir / "evaluations.sqlite"));
  ASSERT_TRUE(repaired) << to_string(repaired.error());
  EXPECT_EQ(repaired->rows.evaluations, 1);
  EXPECT_EQ(open("evaluations.sqlite").lookup(key(1)), "old");
}

TEST_F(StoreTest, TrialsAreFoundByTheirWordsBestFirst) {
  Store store = open();
  for (int i = 0; i < 3; ++i) store.note(trial(i));
  StoredTrial measured = trial(7), failed = trial(8), other = trial(0, "attention bf16 L=64"), foreign = trial(9);
  measured.seconds = 1;
  measured.origin = "measured";
  measured.time_model.clear();
  failed.seconds.reset();
  failed.origin = failed.time_model = "";
  failed.outcome = "verify";
  failed.reason = "rows differ";
  foreign.source = "T4";
  for (const StoredTrial& t : {measured, failed, other, foreign}) store.note(t);
  TrialFilter gemm;
  gemm.op = "gemm";
  gemm.source = StoredTrial::kOwn;
  const auto found = store.trials(gemm);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 5u);
  EXPECT_EQ((*found)[0].params, "{\"BM\":7}");
  EXPECT_EQ((*found)[1].params, "{\"BM\":2}");
  EXPECT_EQ((*found)[4].reason, "rows differ");
  EXPECT_FALSE((*found)[4].verified());
  gemm.problem = "M=9";
  EXPECT_EQ(store.trials(gemm)->size(), 0u);
  EXPECT_EQ(store.trials({})->size(), 7u);
}

TEST_F(StoreTest, ATrialNotedAgainIsOneRowForEachWayOfTiming) {
  Store store = open();
  StoredTrial t = trial(1);
  store.note(t);
  t.seconds = 2e-3;
  store.note(t);
  t.seconds = 1e-3;
  t.time_model = "event model";
  store.note(t);
  const auto found = store.trials({});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].time_model, "event model");
  EXPECT_DOUBLE_EQ(*(*found)[1].seconds, 2e-3);
}

TEST_F(StoreTest, MergingIsIdempotent) {
  {
    Store other = open("other.sqlite");
    for (int i = 0; i < 10; ++i) other.put(key(i), std::to_string(i));
    for (int i = 0; i < 4; ++i) other.note(trial(i));
  }
  Store store = open();
  store.put(key(3), "mine");
  store.note(trial(2));
  const auto first = store.merge(dir / "other.sqlite");
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(first->evaluations, 9);
  EXPECT_EQ(first->trials, 3);
  const auto second = store.merge(dir / "other.sqlite");
  EXPECT_EQ(second->evaluations + second->trials, 0);
  EXPECT_EQ(store.lookup(key(3)), "mine");
  EXPECT_EQ(store.lookup(key(9)), "9");
  EXPECT_EQ(store.count()->trials, 4);
}

TEST_F(StoreTest, MergingADamagedOrForeignFileChangesNothing) {
  Store store = open();
  store.put(key(1), "mine");
  sql("future.sqlite", "CREATE TABLE future (x); PRAGMA user_version=7");
  const auto future = store.merge(dir / "future.sqlite");
  ASSERT_FALSE(future);
  EXPECT_NE(future.error().message.find("found version 7"), std::string::npos);
  {
    Store other = open("other.sqlite");
    for (int i = 0; i < 10; ++i) other.put(key(i), std::to_string(i));
  }
  sql("other.sqlite", "UPDATE evaluation SET payload = 'changed' WHERE binary = 'binary 9'");
  EXPECT_FALSE(store.merge(dir / "other.sqlite"));
  EXPECT_EQ(store.count()->evaluations, 1);
}

TEST_F(StoreTest, OldRowsAreCollected) {
  Store store = open("evaluations.sqlite");
  store.put(key(1), std::string(100'000, 'p'));
  StoreKey old = key(2);
  old.simulator = "sim 0";
  store.put(old, std::string(100'000, 'p'));
  StoredTrial modelled = trial(1), measured = trial(2), foreign = trial(3);
  for (StoredTrial* t : {&modelled, &measured, &foreign}) t->executor = "sim 0";
  measured.origin = "measured";
  foreign.source = "T4";
  for (const StoredTrial& t : {modelled, measured, foreign, trial(4)}) store.note(t);
  Store::Garbage garbage{{"sim 1"}, 0, true};
  const auto would = store.collect(garbage);
  ASSERT_TRUE(would) << to_string(would.error());
  EXPECT_EQ(would->evaluations, 1);
  EXPECT_EQ(would->trials, 1);
  EXPECT_EQ(store.count()->trials, 4);
  garbage.dry_run = false;
  const auto before = fs::file_size(dir / "evaluations.sqlite");
  EXPECT_EQ(store.collect(garbage)->evaluations, 1);
  EXPECT_EQ(store.count()->trials, 3);
  EXPECT_TRUE(store.lookup(key(1)));
  EXPECT_FALSE(store.lookup(old));
  EXPECT_LE(fs::file_size(dir / "evaluations.sqlite"), std::max<uintmax_t>(before, 160'000));
  sql("evaluations.sqlite", "UPDATE trial SET created = datetime('now', '-9 days') WHERE params = '{\"BM\":3}'");
  EXPECT_EQ(store.collect({{}, 10, false})->trials, 0);
  EXPECT_EQ(store.collect({{}, 5, false})->trials, 1);
}

TEST_F(StoreTest, AnImportToAFullDiskAddsNothing) {
  open("evaluations.sqlite").note(trial(0));
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    Store store = open("evaluations.sqlite");
    rlimit limit{200'000, 200'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<StoredTrial> trials;
    for (int i = 1; i < 5000; ++i) trials.push_back(trial(i));
    const auto added = store.add(trials);
    _exit(!added && store.count()->trials == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(open("evaluations.sqlite").count()->trials, 1);
}

TEST_F(StoreTest, AClaimExcludesOtherStoresUntilItEnds) {
  Store one = open(), other = open();
  std::unique_ptr<EvaluationClaim> mine = one.claim(key(1));
  ASSERT_TRUE(mine);
  EXPECT_FALSE(other.claim(key(1)));
  EXPECT_TRUE(other.claim(key(2)));
  mine.reset();
  EXPECT_TRUE(other.claim(key(1)));
}

// Without any word from the dead process, and at once.
TEST_F(StoreTest, TheClaimsOfAKilledProcessEndWithIt) {
  Store store = open();
  int claimed[2];
  ASSERT_EQ(pipe(claimed), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto own = Store::open(dir / "sub/dir/evaluations.sqlite");
    const std::unique_ptr<EvaluationClaim> claim = own ? own->claim(key(1)) : nullptr;
    const char got = claim ? 'y' : 'n';
    if (write(claimed[1], &got, 1) == 1) pause();
    _exit(0);
  }
  char got = 'n';
  ASSERT_EQ(read(claimed[0], &got, 1), 1);
  ASSERT_EQ(got, 'y');
  EXPECT_FALSE(store.claim(key(1)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(store.claim(key(1)));
}

TEST_F(StoreTest, WithoutAFileForThemNoClaimExcludesAnother) {
  Store one = open(), other = open();
  fs::create_directory(dir / "sub/dir/evaluations.sqlite-claims");
  const std::unique_ptr<EvaluationClaim> mine = one.claim(key(1));
  EXPECT_TRUE(mine);
  EXPECT_TRUE(other.claim(key(1)));
}

}  // namespace
}  // namespace roofgen::store_test
