// Runs the built program in its own home folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.h"
#include "tests/support/compile_cache.h"

namespace roofgen::test {

namespace fs = std::filesystem;

struct Outcome {
  int exit = -1;
  std::string out, err;
};

/// Before a run whose times do not matter: they come from the closed form, and nvdisasm, whose start takes longer than
/// a small kernel is compiled and simulated, is not started.
inline constexpr const char* kClosedForm = "ROOFGEN_NVDISASM=/nowhere";

/// Where a home's runs keep compiled kernels: with those of all tests, or in the home, which begins without any.
enum class Kernels { kOfAllTests, kOwn };

/// A folder for the store and the files of one test; removed at the end.
class Home {
 public:
  explicit Home(Kernels kernels = Kernels::kOfAllTests) {
    std::string pattern = (fs::temp_directory_path() / "roofgen-test-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    if (kernels == Kernels::kOfAllTests) cache_ = shared_compile_cache();
    if (cache_.empty()) cache_ = dir_ / "cache";
  }
  ~Home() { fs::remove_all(dir_); }
  Home(const Home&) = delete;
  const fs::path& dir() const { return dir_; }
  /// The beginning of each command line of the shell that runs the program.
  std::string environment() const {
    return "cd '" + dir_.string() + "' && export HOME=$PWD ROOFGEN_DATA_HOME=$PWD/data ROOFGEN_CACHE_DIR='" +
           cache_.string() + "'; ";
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name) << text;
  }
  /// `before` precedes the program on the command line (environment, timeout).
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const std::string command =
        environment() + before + " " ROOFGEN_PROGRAM " " + arguments + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out.txt"), read("err.txt")};
  }
  /// Starts the program, sends it `signal` as soon as the store has a row, and waits for it.
  Outcome run_and_signal(const std::string& arguments, const std::string& signal) const {
    const std::string command =
        environment() + ROOFGEN_PROGRAM " " + arguments +
        " >out.txt 2>err.txt </dev/null & pid=$!; "
        "for i in $(seq 1200); do if grep -qsa rows_checked data/evaluations.sqlite-wal; then break; fi; "
        "sleep 0.05; done; kill -" +
        signal + " $pid; wait $pid";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out.txt"), read("err.txt")};
  }
  std::string read(const std::string& name) const {
    std::ifstream in(dir_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path dir_, cache_;
};

inline bool has_nvrtc(const Home& home) { return home.run("doctor").exit == 0; }

/// Tests that compile kernels.
class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  }
  Home home;
};

/// The JSON of a run that must have succeeded.
inline Json parse(const Outcome& o) {
  EXPECT_EQ(o.exit, 0) << o.err;
  return parse_json(o.out);
}

}  // namespace roofgen::test
