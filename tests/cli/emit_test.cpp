#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/killed.h"

namespace roofgen::test::emit_test {

namespace {

const std::string kEmit = "emit attention --L 128 --d 64 --batch 1 --heads 2 --executor sim --evals 4 -o out";

}  // namespace

TEST(Emit, FilesAreCompleteAndTheSameEveryTime) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const Outcome o = home.run(kEmit + " --replay");
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json manifest = parse_json(home.read("out/manifest.json"));
  ASSERT_FALSE(manifest.is_discarded());
  EXPECT_EQ(manifest["schema"], "roofgen.manifest.3");
  ASSERT_EQ(manifest["pipelines"].size(), 1u);
  const Json& pipeline = manifest["pipelines"][0];
  ASSERT_FALSE(pipeline["kernels"].empty());
  for (const Json& k : pipeline["kernels"])
    EXPECT_GT(home.read("out/" + k["source"].get<std::string>()).size(), 100u) << k;
  EXPECT_EQ(pipeline["result"]["variant"]["verified"], true);
  const Json replay = parse_json(home.read("out/replay/replay.json"));
  ASSERT_FALSE(replay.is_discarded());
  EXPECT_EQ(replay["kernels"].size(), pipeline["kernels"].size());
  int outputs_not_asked_for = 0;
  for (const Json& k : replay["kernels"]) {
    EXPECT_EQ(home.read("out/replay/" + k["cubin"].get<std::string>()).substr(1, 3), "ELF");
    for (const Json& a : k["launch"]["args"])
      if (a["name"] == "LSE") {
        ++outputs_not_asked_for;
        EXPECT_EQ(a.value("bits", 1), 0) << "a null pointer";
      }
  }
  EXPECT_EQ(outputs_not_asked_for, 1);
  ASSERT_EQ(home.run(kEmit + "2").exit, 0);
  for (const char* file : {"attention.h", "attention.c", "attention_images.h", "attention.pc", "CMakeLists.txt",
                           "README.md", "manifest.json", "self_test.c", "self_test_cases.h"}) {
    const std::string text = home.read(std::string("out/") + file);
    EXPECT_FALSE(text.empty()) << file;
    EXPECT_EQ(text, home.read(std::string("out2/") + file)) << file;
    EXPECT_EQ(text.find(home.dir().string()), std::string::npos) << file;
  }
}

// The store then has a part of the search, and no result.
TEST(Emit, AKilledSearchIsNotTakenForAFinishedOne) {
  const Home whole, killed;
  if (!has_nvrtc(whole)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  ASSERT_EQ(whole.run(kEmit).exit, 0);
  EXPECT_NE(killed.run_and_signal(kEmit, "KILL").exit, 0);
  EXPECT_FALSE(fs::exists(killed.dir() / "out/manifest.json"));
  ASSERT_EQ(killed.run(kEmit).exit, 0);
  EXPECT_EQ(whole.read("out/manifest.json"), killed.read("out/manifest.json"));
}

TEST(Emit, AFamilyInTheStoreIsTakenAsItIs) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const CountedStore store(home);
  const auto searches = [&] { return store.count("*) FROM evaluation WHERE binary = 'search'"); };
  const std::string emit = "emit rmsnorm --rows 8,64 --cols 256 --executor sim --evals 1 ";
  ASSERT_EQ(home.run(emit + "--no-store -o none").exit, 0);
  EXPECT_EQ(searches(), 0);
  const Outcome first = home.run(emit + "-o out"), again = home.run(emit + "--table t.json -o out");
  ASSERT_EQ(first.exit, 0) << first.err;
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(searches(), 1);
  const Json manifest = parse_json(home.read("out/manifest.json"));
  EXPECT_EQ(manifest["table"], parse_json(home.read("t.json")));
  EXPECT_EQ(home.read("out/manifest.json"), home.read("none/manifest.json"));
  ASSERT_EQ(home.run(emit + "--within 50% -o wide").exit, 0);
  EXPECT_EQ(searches(), 2) << "another search";
}

TEST(Emit, AnArchitectureWithoutADeviceIsAUsageError) {
  const Home home;
  for (const auto& [archs, words] :
       {std::pair{"70", "no device of the catalogue is sm_70"}, {"x", "unknown arch \"x\""}}) {
    const Outcome o = home.run(kEmit + " --archs " + archs);
    EXPECT_EQ(o.exit, 2) << o.err;
    EXPECT_NE(o.err.find(words), std::string::npos) << o.err;
  }
}

TEST(Emit, ADirectoryThatCannotBeMadeIsSaidBeforeWork) {
  const Home home;
  home.write("out", "a file");
  const Outcome o = home.run(kEmit);
  EXPECT_EQ(o.exit, 1);
  EXPECT_NE(o.err.find("cannot make the directory out"), std::string::npos) << o.err;
}

}  // namespace roofgen::test::emit_test
