// Runs that are killed at random points, over and over, on one store.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <random>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"

namespace roofgen::test {

/// Without what depends on which of the results were known.
inline std::string without_fresh(std::string text) { return test::substituted(text, "\"fresh\": \\{[^}]*\\}", ""); }

/// A store that counts how often each evaluation was written.
class CountedStore {
 public:
  explicit CountedStore(const Home& home) : path_((home.dir() / "data/evaluations.sqlite").string()) {
    EXPECT_EQ(home.run("db list").exit, 0);  // makes it
    sql("CREATE TABLE written (evaluation TEXT); CREATE TRIGGER count_written AFTER INSERT ON evaluation BEGIN "
        "INSERT INTO written VALUES (new.binary || new.slice || new.simulator || new.device); END");
  }
  std::string sql(const std::string& text) const {
    sqlite3* db = nullptr;
    std::string out;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    const auto first = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0] ? values[0] : "";
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), first, &out, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
    return out;
  }
  int count(const std::string& what) const { return std::stoi(sql("SELECT count(" + what)); }
  int evaluations() const { return count("*) FROM evaluation"); }
  int written() const { return count("*) FROM written"); }
  int different() const { return count("DISTINCT evaluation) FROM written"); }

 private:
  std::string path_;
};

/// Starts the program and kills it after `patience` unless it ends before. 137: killed.
inline Outcome run_and_kill(const Home& home, const std::string& arguments, std::chrono::milliseconds patience) {
  const std::string command =
      home.environment() + "exec " ROOFGEN_PROGRAM " " + arguments + " >out.txt 2>err.txt </dev/null";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < end) {
      usleep(1000);
      continue;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    break;
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), home.read("out.txt"), home.read("err.txt")};
}

/// Kills `kills` runs of `job`. Each home goes on until a run ends by itself; its result must then be that of a run
/// that was not disturbed, and no evaluation may have been written twice.
inline void expect_to_survive(const std::string& job, int kills, unsigned seed, Kernels kernels) {
  unsetenv("ROOFGEN_COSTS");  // how many runs it takes to be killed depends on the clock
  if (kernels == Kernels::kOfAllTests) {
    ASSERT_EQ(Home(kernels).run(job).exit, 0);  // so that no run is longer than those to be killed
  }
  const Home undisturbed(kernels);
  const CountedStore reference(undisturbed);
  const auto begun = std::chrono::steady_clock::now();
  const Outcome whole = undisturbed.run(job);
  const auto duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun).count();
  ASSERT_EQ(whole.exit, 0) << whole.err;
  ASSERT_GT(reference.written(), 0);
  ASSERT_EQ(reference.written(), reference.different());
  std::mt19937 random(seed);
  int done = 0, finished = 0;
  while (done < kills) {
    const Home home(kernels);
    const CountedStore store(home);
    int kept = 0;
    for (bool ended = false; !ended;) {
      // The last runs are short: what is left to do is little. Early kills must occur as well.
      const Outcome o =
          done < kills ? run_and_kill(home, job, std::chrono::milliseconds(random() % static_cast<unsigned>(duration)))
                       : home.run(job);
      ASSERT_TRUE(o.exit == 0 || o.exit == 137) << o.exit << " " << o.err;
      ASSERT_EQ(o.err.find("store"), std::string::npos) << o.err;
      done += o.exit == 137;
      ended = o.exit == 0;
      ASSERT_EQ(store.sql("PRAGMA integrity_check"), "ok");
      ASSERT_GE(store.evaluations(), kept) << "a finished evaluation was lost";
      ASSERT_EQ(store.written(), store.different()) << "an evaluation ran twice";
      kept = store.evaluations();
      if (ended) {
        EXPECT_EQ(without_fresh(o.out), without_fresh(whole.out));
      }
    }
    ++finished;
    EXPECT_EQ(store.evaluations(), reference.evaluations());
  }
  EXPECT_GT(finished, 0);
}

}  // namespace roofgen::test
