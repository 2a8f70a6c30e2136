#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::emit_test {

namespace {

const std::string kEmit = "emit attention --L 128 --d 64 --batch 1 --heads 2 --executor sim --evals 4 -o out";

}  // namespace

TEST(Emit, FilesAreCompleteAndTheHeaderCompilesAsC) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const Outcome o = home.run(kEmit);
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json manifest = Json::parse(home.read("out/manifest.json"), nullptr, false);
  ASSERT_FALSE(manifest.is_discarded());
  ASSERT_FALSE(manifest["kernels"].empty());
  for (const Json& k : manifest["kernels"])
    for (const Json& file : k["files"]) EXPECT_GT(home.read("out/" + file.get<std::string>()).size(), 100u) << file;
  EXPECT_EQ(home.read("out/" + manifest["kernels"][0]["files"][2].get<std::string>()).substr(1, 3), "ELF");
  EXPECT_EQ(manifest["result"]["schema"], "roofgen.tune.1");
  const Json replay = Json::parse(home.read("out/replay/replay.json"), nullptr, false);
  ASSERT_FALSE(replay.is_discarded());
  EXPECT_EQ(replay["kernels"].size(), manifest["kernels"].size());
  for (const Json& k : replay["kernels"]) {
    EXPECT_EQ(home.read("out/replay/" + k["cubin"].get<std::string>()).substr(1, 3), "ELF");
    for (const Json& a : k["launch"]["args"])
      if (a["name"] == "LSE") {
        EXPECT_EQ(a.value("bits", 1), 0) << "not asked for: a null pointer";
      }
  }
  home.write("use.c", "#include \"out/attention.h\"\nint main(void) { return 0; }\n");
  EXPECT_EQ(std::system(("cd '" + home.dir().string() +
                         "' && cc -std=c11 -Wall -Wno-unused-function -Werror -I. -I'" ROOFGEN_SOURCE_DIR
                         "/tests/shim/emitted' -c use.c -o use.o")
                            .c_str()),
            0)
      << home.read("out/attention.h");
}

TEST(Emit, ADirectoryThatCannotBeMadeIsSaidBeforeWork) {
  const Home home;
  home.write("out", "a file");
  const Outcome o = home.run(kEmit);
  EXPECT_EQ(o.exit, 1);
  EXPECT_NE(o.err.find("cannot make the directory out"), std::string::npos) << o.err;
}

}  // namespace roofgen::test::emit_test
