// The search for NVRTC, and clear messages when the search fails.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/paths.h"
#include "base/target.h"
#include "runtime/compile/headers.h"
#include "runtime/compile/nvrtc.h"
#include "tests/runtime/process.h"

namespace roofgen::nvrtc_search_test {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::write_text;

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

TEST(NvrtcSearch, ChosenPathIsTheOnlyOneTried) {
  NvrtcSearch search = nvrtc_search_from_environment();
  search.chosen = "/no/such/libnvrtc.so";
  NvrtcInfo info;
  auto found = find_nvrtc(search, &info);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().exit, Exit::kUnavailable);
  EXPECT_NE(found.error().message.find("CUDA 12.1 or newer"), std::string::npos);
  EXPECT_FALSE(info.found);
  ASSERT_EQ(info.searched.size(), 1u);
  EXPECT_NE(info.searched[0].find("/no/such/libnvrtc.so"), std::string::npos);
  EXPECT_EQ(found.error().notes, info.searched);
}

TEST(NvrtcSearch, RecordsEverythingTried) {
  TempDir dir;
  fs::create_directories(dir / "cuda/lib64");
  write_text(dir / "cuda/lib64/libnvrtc.so.13", "not a library");
  NvrtcSearch search;
  search.executable_dir = dir / "bin";
  search.toolkits = {dir / "cuda", dir / "absent"};
  search.loader_path = false;
  NvrtcInfo info;
  EXPECT_FALSE(find_nvrtc(search, &info));
  EXPECT_TRUE(mentions(info.searched, dir / "bin/nvrtc: no such directory"));
  EXPECT_TRUE(mentions(info.searched, dir / "cuda/lib64/libnvrtc.so.13: "));
  EXPECT_TRUE(mentions(info.searched, dir / "absent: no such directory"));
}

TEST(NvrtcSearch, PrivatePrefixAboveTheProgramWins) {
  if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found";
  TempDir dir;
  fs::create_directories(dir / "toolkit/lib64");
  write_text(dir / "toolkit/lib64/libnvrtc.so.13", "not a library");
  for (const char* layout : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "lib64"}) {
    fs::path lib = fs::path(dir / "build/nvrtc") / layout;
    fs::create_directories(lib);
    fs::create_symlink(nvrtc_info().library, lib / "libnvrtc.so.13");
    NvrtcSearch search = nvrtc_search_from_environment();
    search.chosen.clear();
    search.executable_dir = dir / "build/tests/runtime";
    search.toolkits = {dir / "toolkit"};
    NvrtcInfo info;
    EXPECT_TRUE(find_nvrtc(search, &info));
    // The loader may return the name under which it first loaded the library, so the test only checks the selection.
    EXPECT_TRUE(info.found) << layout;
    EXPECT_FALSE(mentions(info.searched, "toolkit")) << "tried before, and recorded as not a library";
    fs::remove_all(dir / "build");
  }
}

TEST(NvrtcSearch, WheelsOfThePythonEnvironmentComeAfterToolkits) {
  TempDir dir;
  const fs::path wheels = fs::path(dir / "env/lib/python3.12/site-packages/nvidia/cu13");
  fs::create_directories(wheels / "lib");
  fs::create_directories(fs::path(dir / "env/lib/python3.13/site-packages"));
  setenv("VIRTUAL_ENV", std::string(dir / "env").c_str(), 1);
  const NvrtcSearch search = nvrtc_search_from_environment();
  setenv("VIRTUAL_ENV", std::string(dir / "none").c_str(), 1);
  const NvrtcSearch without = nvrtc_search_from_environment();
  unsetenv("VIRTUAL_ENV");
  ASSERT_EQ(search.toolkits.size(), without.toolkits.size() + 1);
  const auto found = std::find(search.toolkits.begin(), search.toolkits.end(), wheels.string());
  ASSERT_NE(found, search.toolkits.end());
  EXPECT_LT(std::find(search.toolkits.begin(), search.toolkits.end(), "/usr/local/cuda"), found);
}

TEST(NvrtcSearch, ATargetChoosesTheFirstLibraryThatHasIt) {
  if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found";
  TempDir dir;
  fs::create_directories(dir / "bin/nvrtc-newer/lib");
  fs::copy_file(ROOFGEN_NEWER_NVRTC, dir / "bin/nvrtc-newer/lib/libnvrtc.so.13");
  NvrtcSearch search = nvrtc_search_from_environment();
  search.chosen.clear();
  search.executable_dir = dir / "bin";
  NvrtcInfo ordinary, newer, unknown;
  ASSERT_TRUE(find_nvrtc(search, &ordinary, "sm_90"));
  EXPECT_NE(ordinary.major, 14);
  ASSERT_TRUE(find_nvrtc(search, &newer, "sm_990"));
  EXPECT_EQ(newer.major, 14);
  EXPECT_TRUE(newer.targets("sm_990a"));
  EXPECT_TRUE(mentions(newer.searched, "does not compile for sm_990"));
  // No library has it: the first one stands, and its targets are named.
  ASSERT_TRUE(find_nvrtc(search, &unknown, "sm_991"));
  EXPECT_EQ(unknown.library, ordinary.library);
  EXPECT_FALSE(unknown.targets("sm_991"));
}

TEST(Targets, RunWhereTheirNameSays) {
  const auto runs = [](const char* name, int arch) { return parse_target(name)->runs_on(arch); };
  EXPECT_TRUE(runs("sm_80", 86) && !runs("sm_86", 80) && !runs("sm_80", 90));
  EXPECT_TRUE(runs("sm_100a", 100) && !runs("sm_100a", 103));
  EXPECT_TRUE(runs("sm_100f", 103) && !runs("sm_103f", 100) && !runs("sm_100f", 110) && runs("sm_120f", 121));
  for (const char* name : {"sm_", "sm_90f", "sm_9a", "sm_90aa", "sm_90b", "90a", "sm_1000"})
    EXPECT_FALSE(parse_target(name)) << name;
  EXPECT_TRUE(is_specific("sm_90a") && is_specific("sm_100f") && !is_specific("sm_100"));
}

TEST(NvrtcSearch, InfoIsComplete) {
  const NvrtcInfo& info = nvrtc_info();
  if (!info.found) GTEST_SKIP() << "NVRTC not found";
  EXPECT_TRUE(fs::exists(info.library)) << info.library;
  EXPECT_GE(info.major, kMinNvrtcMajor);
  EXPECT_TRUE(mentions(info.archs, "sm_90"));
  EXPECT_EQ(nvrtc()->build_id().size() % 2, 0u);
}

TEST(NvrtcSearch, OldReleaseIsRefusedByItsVersion) {
  NvrtcSearch search;
  search.chosen = ROOFGEN_OLD_NVRTC;  // a stand-in that only reports its version, 11.8
  NvrtcInfo info;
  EXPECT_FALSE(find_nvrtc(search, &info));
  EXPECT_TRUE(mentions(info.searched, "NVRTC 11.8 is too old, 12.1 or newer is needed"));
}

TEST(NvrtcSearch, MissingNvrtcIsUnavailable) {
  // In a separate process, because the result of the search is cached for the life of a process.
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ROOFGEN_NVRTC", "/no/such/place/libnvrtc.so", 1);
        auto made = make_nvrtc_compiler({}, "", nullptr);
        std::fputs(made ? "found" : to_string(made.error()).c_str(), stderr);
        _exit(made ? 1 : static_cast<int>(made.error().exit));
      },
      ::testing::ExitedWithCode(3), "NVRTC .* was not found.*ROOFGEN_NVRTC.*\n.*no/such/place");
}

TEST(Headers, ClosureFollowsIncludesInsideTheDirectoryOnly) {
  TempDir dir;
  fs::create_directories(dir / "include/cccl/nv");
  write_text(dir / "include/a.h", "#include \"b.h\"\n  #  include <nv/target>\n#include <missing.h>\n");
  write_text(dir / "include/b.h", "#include \"a.h\"\n#include \"../secret.h\"\n");
  write_text(dir / "include/cccl/nv/target", "target");
  write_text(dir / "secret.h", "secret");
  HeaderSet headers(dir / "include");
  Headers closure =
      headers.closure("// #include <b.h>\n#include <a.h>\n#include </etc/passwd>\n#include <unterminated\n");
  ASSERT_EQ(closure.size(), 3u);
  EXPECT_EQ(closure[0].first, "a.h");
  EXPECT_EQ(closure[1].first, "b.h");
  EXPECT_EQ(closure[2], (std::pair<std::string, std::string>("nv/target", "target")));
  EXPECT_TRUE(headers.closure("int x;\n").empty());
  EXPECT_TRUE(HeaderSet("").closure("#include <a.h>\n").empty());
}

TEST(Headers, NamesThatAreRelativeToTheirHeader) {
  TempDir dir;
  fs::create_directories(dir / "include/group/details");
  write_text(dir / "include/group.h", "#include \"group/details/info.h\"\n");
  write_text(dir / "include/group/details/info.h", "#include \"sync.h\"\n#include \"../../group.h\"\n");
  write_text(dir / "include/group/details/sync.h", "sync");
  const Headers closure = HeaderSet(dir / "include").closure("#include <group.h>\n");
  std::vector<std::string> names;
  for (const auto& [name, text] : closure) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"../../group.h", "group.h", "group/details/info.h", "sync.h"}));
}

TEST(Headers, StandardOnesThatNvrtcLacks) {
  const Headers alone = HeaderSet("").closure("#include <cassert>\n#include <limits>\n");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].first, "cassert");
  EXPECT_NE(alone[0].second.find("__assertfail"), std::string::npos);
  TempDir dir;
  fs::create_directories(dir / "include/cccl/cuda/std");
  write_text(dir / "include/cccl/cuda/std/limits", "limits");
  write_text(dir / "include/cccl/cuda/std/utility", "utility");
  const Headers with = HeaderSet(dir / "include").closure("#include <limits>\n#include <algorithm>\n");
  std::vector<std::string> names;
  for (const auto& [name, text] : with) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"algorithm", "cuda/std/limits", "cuda/std/utility", "limits"}));
  EXPECT_EQ(with[0].second.find("clamp"), std::string::npos);  // this toolkit lacks the header
}

TEST(Paths, OwnVariableThenXdgThenHome) {
  setenv("HOME", "/home/someone", 1);
  unsetenv("ROOFGEN_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_dir(), "/home/someone/.cache/roofgen");
  setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
  EXPECT_EQ(cache_dir(), "/home/someone/.cache/roofgen");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(cache_dir(), "/xdg/roofgen");
  setenv("ROOFGEN_CACHE_DIR", "/own", 1);
  EXPECT_EQ(cache_dir(), "/own");
  unsetenv("ROOFGEN_DATA_HOME");
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(data_home(), "/data/roofgen");
  unsetenv("XDG_DATA_HOME");
  unsetenv("HOME");
  EXPECT_EQ(data_home(), "");
}

}  // namespace
}  // namespace roofgen::nvrtc_search_test
