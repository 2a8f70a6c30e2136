// The evaluation store: persistence through kills, other processes, damage and other versions.
#include "tuner/search/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/runtime/process.h"

namespace roofgen::store_test {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::write_text;

StoreKey key(int number) { return {"binary " + std::to_string(number), "slice", "sim 1", "h200"}; }

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

TEST_F(StoreTest, FileThatIsNoDatabaseIsAnErrorAndStaysAsItIs) {
  write_text(dir / "garbage.sqlite", std::string(10'000, 'g'));
  auto made = Store::open(dir / "garbage.sqlite");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("cannot be used: file is not a database"), std::string::npos);
  EXPECT_EQ(testing::read_text(dir / "garbage.sqlite"), std::string(10'000, 'g'));
}

TEST_F(StoreTest, UnwritablePlaceIsAnError) {
  write_text(dir / "file", "");
  auto made = Store::open(dir / "file/below/evaluations.sqlite");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit, Exit::kFailed);
}

TEST_F(StoreTest, DamageFoundLaterWarnsOnceAndTheJobGoesOn) {
  {
    Store store = open("evaluations.sqlite");
    for (int i = 0; i < 200; ++i) store.put(key(i), std::string(2000, 'p'));
  }
  std::string bytes = testing::read_text(dir / "evaluations.sqlite");
  ASSERT_GT(bytes.size(), 100'000u) << "the log was not folded in";
  for (size_t i = 8192; i < bytes.size(); ++i) bytes[i] = static_cast<char>(0xee);
  write_text(dir / "evaluations.sqlite", bytes);
  auto made = Store::open(dir / "evaluations.sqlite", [this](const std::string& line) { warnings.push_back(line); });
  ASSERT_TRUE(made);
  for (int i = 0; i < 200; ++i) {
    auto found = made->lookup(key(i));
    if (found) {
      EXPECT_EQ(*found, std::string(2000, 'p'));
    }
    made->put(key(1000 + i), "new");
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("going on without"), std::string::npos) << warnings[0];
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
  EXPECT_TRUE(fs::exists(dir / "evaluations.v1.sqlite"));
}

}  // namespace
}  // namespace roofgen::store_test
