// The cache directory: stored entries, damage, and concurrent processes.
#include "runtime/compile/cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <map>

#include "runtime/compiler.h"
#include "tests/runtime/kernels.h"
#include "tests/runtime/process.h"

namespace roofgen::cache_test {
namespace {

namespace fs = std::filesystem;
using testing::find_files;
using testing::read_text;
using testing::scale_program;
using testing::TempDir;
using testing::write_text;

constexpr uint64_t kLarge = uint64_t{1} << 30;

CacheKey key(int number) {
  char digest[65];
  std::snprintf(digest, sizeof digest, "%064x", number * 0x01010101);
  return {digest, "kern", "sm_90", "NVRTC 13.0", {"-x"}};
}

CompileReply reply(const std::string& text = "t") {
  return {0, "NVRTC_SUCCESS", "log " + text, "ptx " + text, std::string("\0cubin ", 7) + text};
}

class Cache : public ::testing::Test {
 protected:
  std::unique_ptr<CompileCache> open(uint64_t max_bytes = kLarge) {
    return std::make_unique<CompileCache>(dir.path(), max_bytes,
                                          [this](const std::string& line) { warnings.push_back(line); });
  }
  TempDir dir;
  std::vector<std::string> warnings;
};

TEST_F(Cache, ReturnsStoredReplies) {
  auto cache = open();
  EXPECT_FALSE(cache->lookup(key(1).digest));
  cache->store(key(1), "source", reply());
  auto hit = open()->lookup(key(1).digest);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->status, 0);
  EXPECT_EQ(hit->ptx, reply().ptx);
  EXPECT_EQ(hit->cubin, reply().cubin);
  EXPECT_EQ(hit->log, reply().log);
  EXPECT_FALSE(cache->lookup(key(2).digest));
  auto sources = find_files(dir.path(), "kernel.cu");
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(read_text(sources[0]), "source");
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

TEST_F(Cache, KeepsErrorsOfTheSource) {
  CompileReply failed{kNvrtcCompilationError, "NVRTC_ERROR_COMPILATION", "kernel.cu(1): error: x", "", ""};
  open()->store(key(1), "source", failed);
  auto hit = open()->lookup(key(1).digest);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->status, kNvrtcCompilationError);
  EXPECT_EQ(hit->log, failed.log);
}

TEST_F(Cache, StoringTwiceIsFine) {
  auto cache = open();
  cache->store(key(1), "source", reply("first"));
  cache->store(key(1), "source", reply("second"));
  EXPECT_EQ(cache->lookup(key(1).digest)->ptx, "ptx first");
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Cache, DamagedEntryIsRemovedAndAMiss) {
  struct Damage {
    const char* file;
    std::function<void(const fs::path&)> apply;
  };
  auto truncate = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); };
  auto flip = [](const fs::path& path) {
    std::string text = read_text(path);
    text[text.size() / 2] ^= 1;
    write_text(path, text);
  };
  auto remove = [](const fs::path& path) { fs::remove(path); };
  for (const Damage& damage :
       std::vector<Damage>{{"kernel.ptx", truncate},
                           {"kernel.cubin", flip},
                           {"kernel.log", remove},
                           {"meta.json", truncate},
                           {"meta.json", [](const fs::path& p) { write_text(p, "[1,2]"); }},
                           {"meta.json", [](const fs::path& p) { write_text(p, ""); }},
                           {"meta.json", [](const fs::path& p) { write_text(p, std::string(100000, '[')); }}}) {
    SCOPED_TRACE(damage.file);
    auto cache = open();
    cache->store(key(1), "source", reply());
    ASSERT_TRUE(cache->lookup(key(1).digest));
    damage.apply(find_files(dir.path(), damage.file).at(0));
    EXPECT_FALSE(cache->lookup(key(1).digest));
    EXPECT_TRUE(find_files(dir.path(), "kernel.cu").empty()) << "the damaged entry is still there";
    cache->store(key(1), "source", reply("again"));
    ASSERT_TRUE(cache->lookup(key(1).digest));
    EXPECT_EQ(cache->lookup(key(1).digest)->ptx, "ptx again");
    fs::remove_all(dir / "v1");
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Cache, EntryUnderAnotherNameIsNotBelieved) {
  auto cache = open();
  cache->store(key(1), "source", reply());
  std::string other = key(2).digest;
  fs::create_directories(dir / ("v1/" + other.substr(0, 2)));
  fs::rename(find_files(dir.path(), "kernel.cu").at(0).parent_path(), dir / ("v1/" + other.substr(0, 2) + "/" + other));
  EXPECT_FALSE(cache->lookup(other));
}

TEST_F(Cache, UnwritableDirectoryWarnsOnceAndGoesOn) {
  // A file in place of the directory: unwritable even for root.
  write_text(dir / "file", "");
  CompileCache cache(dir / "file/below", kLarge, [this](const std::string& line) { warnings.push_back(line); });
  cache.store(key(1), "source", reply());
  cache.store(key(2), "source", reply());
  EXPECT_FALSE(cache.lookup(key(1).digest));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cannot be written"), std::string::npos);
}

TEST_F(Cache, FullDiskWarnsOnceAndLeavesNoFiles) {
  // A file size limit simulates a full disk: writes fail half-way. A child process confines the limit.
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int lines = 0;
    CompileCache cache(dir.path(), kLarge, [&](const std::string&) { ++lines; });
    cache.store(key(1), "source", reply(std::string(100000, 'x')));
    cache.store(key(2), "source", reply(std::string(100000, 'x')));
    _exit(lines == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(find_files(dir.path(), "kernel.cu").empty());
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

TEST_F(Cache, PrunesLeastRecentlyUsedAndStaleBuilds) {
  auto cache = open(100'000);
  auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i) {
    cache->store(key(i), "source", reply(std::string(10'000, 'x')));
    std::string digest = key(i).digest;
    fs::last_write_time(dir / ("v1/" + digest.substr(0, 2) + "/" + digest + "/meta.json"),
                        now - std::chrono::hours(100 - i));
  }
  EXPECT_TRUE(cache->lookup(key(0).digest)) << "which marks it as used";
  fs::create_directories(dir / "tmp/killed");
  fs::create_directories(dir / "tmp/busy");
  fs::last_write_time(dir / "tmp/killed", now - std::chrono::hours(48));
  cache.reset();  // 10 x 30 kB > 100 kB: keeps the entries that fit in 90 kB
  EXPECT_EQ(find_files(dir.path(), "meta.json").size(), 2u);
  auto again = open();
  EXPECT_TRUE(again->lookup(key(0).digest));
  EXPECT_TRUE(again->lookup(key(9).digest));
  EXPECT_FALSE(again->lookup(key(8).digest));
  EXPECT_FALSE(fs::exists(dir / "tmp/killed"));
  EXPECT_TRUE(fs::exists(dir / "tmp/busy"));
}

TEST_F(Cache, NoDirectoryMeansNoCache) {
  CompileCache cache("", kLarge, [this](const std::string& line) { warnings.push_back(line); });
  cache.store(key(1), "source", reply());
  EXPECT_FALSE(cache.lookup(key(1).digest));
  EXPECT_TRUE(warnings.empty());
}

// ---- together with the compiler -----------------------------------------------------------------

class CachedCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found";
  }
  struct Tally {
    int good = 0, bad = 0, cached = 0;
    std::map<size_t, std::string> cubins;
  };
  Tally compile(const std::vector<Program>& programs) {
    std::vector<const Program*> pointers;
    for (const Program& each : programs) pointers.push_back(&each);
    CompileOptions options;
    options.jobs = 2;
    options.timeout = timeout;
    auto with = make_nvrtc_compiler(options, dir.path(), nullptr);
    Tally tally;
    (*with)->compile_all(pointers, [&](CompileOutcome outcome) {
      ++(outcome.binary ? tally.good : tally.bad);
      tally.cached += outcome.cached;
      if (outcome.binary) tally.cubins[outcome.index] = outcome.binary->cubin;
      if (!outcome.binary) errors.push_back(to_string(outcome.binary.error()));
      return true;
    });
    return tally;
  }
  TempDir dir;
  std::chrono::milliseconds timeout{20000};
  std::vector<std::string> errors;
};

TEST_F(CachedCompile, SecondRunCompilesNothingAndGivesTheSameBytes) {
  std::vector<Program> programs;
  for (int i = 0; i < 6; ++i) programs.push_back(scale_program(i));
  Tally cold = compile(programs), warm = compile(programs);
  EXPECT_EQ(cold.good, 6);
  EXPECT_EQ(cold.cached, 0);
  EXPECT_EQ(warm.good, 6);
  EXPECT_EQ(warm.cached, 6);
  EXPECT_EQ(warm.cubins, cold.cubins);
}

TEST_F(CachedCompile, ErrorsAreRememberedWithTheNewLineMap) {
  Program bad = testing::program("extern \"C\" __global__ void kern(float* x) { x[0] = nothing; }\n");
  EXPECT_EQ(compile({bad}).cached, 0);
  bad.line_map.lines = {{"moved.cu.jinja", 7, 0}};
  EXPECT_EQ(compile({bad}).cached, 1);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[1].rfind("moved.cu.jinja:7: error: ", 0), 0u) << errors[1];
}

TEST_F(CachedCompile, TimeOutsAreNotRemembered) {
  timeout = std::chrono::milliseconds(300);
  EXPECT_EQ(compile({testing::endless_program()}).bad, 1);
  EXPECT_TRUE(find_files(dir.path(), "meta.json").empty());
}

TEST_F(CachedCompile, CorruptEntryIsCompiledAgain) {
  Tally cold = compile({scale_program(1)});
  fs::resize_file(find_files(dir.path(), "kernel.cubin").at(0), 100);
  Tally again = compile({scale_program(1)});
  EXPECT_EQ(again.cached, 0);
  EXPECT_EQ(again.cubins, cold.cubins);
  EXPECT_EQ(compile({scale_program(1)}).cached, 1);
}

TEST_F(CachedCompile, ManyProcessesShareOneDirectory) {
  std::vector<Program> programs;
  for (int i = 0; i < 8; ++i) programs.push_back(scale_program(i));
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    pid_t child = fork();
    if (child == 0) _exit(compile(programs).good == 8 ? 0 : 1);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Tally warm = compile(programs);
  EXPECT_EQ(warm.cached, 8);
  EXPECT_EQ(find_files(dir.path(), "meta.json").size(), 8u);
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

}  // namespace
}  // namespace roofgen::cache_test
