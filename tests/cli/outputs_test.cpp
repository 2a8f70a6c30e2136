// Files of the user that are in a command's way.
#include "base/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::outputs_test {
namespace {

using testing::HasSubstr;

const std::string kMine = "{\"mine\": true}\n";

const char* const kKernel =
    "__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"
    "int main() { scale<<<1, 32>>>(nullptr); }\n";
const char* const kArguments = R"([{"name": "x", "type": "f32", "size": 32, "fill": 1, "dump": "OUT"}])";

/// Each command that writes a file, with the file OUT.
std::vector<std::string> writers(bool compiles) {
  std::vector<std::string> out = {"explain gemm --M 64 --N 64 --K 64 --html OUT",
                                  "model llama-3-8b --batch 1 --html OUT",
                                  "roofline --html OUT",
                                  "report saved.json --html OUT",
                                  "replay space.json --seeds 1 --evals 1 --html OUT",
                                  "db export --store mine.sqlite -o OUT"};
  if (compiles)
    for (const char* more : {"check k.cu --emit-args OUT", "check k.cu --grid 1 --block 32 --args a.json",
                             "check k.cu --grid 1 --block 32 --args b.json --sarif OUT",
                             "profile k.cu --grid 1 --block 32 --args b.json --html OUT",
                             "profile k.cu --grid 1 --block 32 --args b.json --trace OUT"})
      out.push_back(more);
  return out;
}

const char* const kSpace = R"({"device_name": "A", "kernel_name": "k", "problem_size": [1], "tune_params_keys": ["a"],
"tune_params": {"a": [1, 2]}, "objective": "time", "cache": {"1": {"a": 1, "time": 1.0}, "2": {"a": 2, "time": 2.0}}})";

}  // namespace

TEST(Outputs, OnlyWhatRoofgenWroteIsReplaced) {
  const Home home;
  const std::string data = home.dir() / "data", path = home.dir() / "page";
  const Outputs own(data, false);
  ASSERT_TRUE(own.write(path, "first"));
  ASSERT_TRUE(own.write(path, "second")) << "roofgen wrote the first";
  EXPECT_EQ(home.read("page"), "second");
  home.write("page", "changed by hand");
  const auto changed = own.write(path, "third");
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().exit, Exit::kUsage);
  EXPECT_THAT(to_string(changed.error()), HasSubstr("page: error: is there already, and roofgen did not write it"));
  EXPECT_EQ(home.read("page"), "changed by hand");
  EXPECT_TRUE(own.write(path, "changed by hand")) << "the same bytes: nothing is lost";
  EXPECT_TRUE(own.write(path, "fourth")) << "roofgen writes these bytes, too";
  home.write("page", "");
  EXPECT_TRUE(own.check({path})) << "an empty file";
  home.write("page", "changed by hand again");
  EXPECT_TRUE(Outputs(data, true).write(path, "fifth")) << "--force";
  EXPECT_EQ(home.read("page"), "fifth");
}

TEST(Outputs, AllFilesOrNone) {
  const Home home;
  home.write("b", kMine);
  home.write("c", kMine);
  const std::string at = home.dir().string() + "/";
  const auto refused =
      Outputs(home.dir() / "data", false).write_all({{at + "a", "1"}, {at + "b", "2"}, {at + "c", "3"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()), HasSubstr("b: error: is there already"));
  EXPECT_THAT(to_string(refused.error()), HasSubstr("1 more file"));
  EXPECT_FALSE(fs::exists(at + "a"));
  EXPECT_EQ(home.read("b"), kMine);
}

TEST(Outputs, WithoutAHomeNothingIsOwn) {
  const Home home;
  const std::string path = home.dir() / "page";
  ASSERT_TRUE(Outputs("", false).write(path, "first"));
  EXPECT_FALSE(Outputs("", false).write(path, "second"));
}

TEST(Outputs, EveryCommandLeavesTheUsersFile) {
  const Home home;
  home.write("k.cu", kKernel);
  home.write("a.json", kArguments);
  home.write("b.json", R"([{"name": "x", "type": "f32", "size": 32, "fill": 1}])");
  home.write("space.json", kSpace);
  home.write("saved.json", home.run("explain gemm --M 64 --N 64 --K 64 --json").out);
  ASSERT_EQ(home.run("db import space.json --store mine.sqlite").exit, 0);
  for (const std::string& command : writers(has_nvrtc(home))) {
    fs::remove(home.dir() / "OUT");
    const Outcome first = home.run(command);
    ASSERT_TRUE(first.exit == 0 && fs::file_size(home.dir() / "OUT") > 0) << command << ": " << first.err;
    EXPECT_EQ(home.run(command).exit, 0) << command << ": its own file";
    home.write("OUT", kMine);
    const Outcome refused = home.run(command);
    EXPECT_EQ(refused.exit, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("OUT: error: is there already")) << command;
    EXPECT_EQ(home.read("OUT"), kMine) << command;
    EXPECT_EQ(home.run(command + " --force").exit, 0) << command;
    EXPECT_NE(home.read("OUT"), kMine) << command;
  }
}

TEST(Outputs, ADatabaseOfAnotherProgramIsNoStore) {
  const Home home;
  ASSERT_EQ(std::system(("cd '" + home.dir().string() +
                         "' && python3 -c \"import sqlite3; d = sqlite3.connect('other'); "
                         "d.execute('CREATE TABLE mine (x)'); d.commit()\"")
                            .c_str()),
            0);
  home.write("space.json", kSpace);
  const std::string before = home.read("other");
  const Outcome o = home.run("db import space.json --store other");
  EXPECT_EQ(o.exit, 2) << o.err;
  EXPECT_THAT(o.err, HasSubstr("other: error: a database of another program"));
  EXPECT_EQ(home.read("other"), before);
}

// A bundle in a repository is made again on another machine, whose records know nothing of it.
TEST(Outputs, ABundleIsKnownByItsManifest) {
  const Home here, there;
  if (!has_nvrtc(here)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const std::string emit = "emit rmsnorm --rows 8 --cols 256 --executor sim --evals 1 -o lib --name norm";
  here.write("lib/README.md", "# My project\n");
  here.write("lib/CMakeLists.txt", "project(mine)\n");
  const Outcome refused = here.run(emit);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("CMakeLists.txt: error: is there already"));
  EXPECT_EQ(here.read("lib/README.md"), "# My project\n");
  EXPECT_FALSE(fs::exists(here.dir() / "lib/norm.c"));
  ASSERT_EQ(here.run(emit + " --force").exit, 0);
  fs::copy(here.dir() / "lib", there.dir() / "lib");
  EXPECT_EQ(there.run(emit + " --set threads=64").exit, 0) << there.read("err.txt");
  there.write("lib/norm.h", "/* improved */\n");
  const Outcome changed = there.run(emit);
  EXPECT_EQ(changed.exit, 2);
  EXPECT_THAT(changed.err, HasSubstr("norm.h: error: is there already"));
  EXPECT_EQ(there.read("lib/norm.h"), "/* improved */\n");
}

}  // namespace roofgen::test::outputs_test
