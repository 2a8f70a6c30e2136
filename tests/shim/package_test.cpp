// A bundle as its user builds it: with CMake, its own test run by ctest on the simulated driver.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::package_test {
namespace {

/// Emits, configures, builds and tests; the output of ctest.
std::string built_and_tested(const Home& home, const std::string& emit, const std::string& environment = "") {
  const Outcome o = home.run("emit " + emit + " --executor sim --evals 1 -o B", kClosedForm);
  EXPECT_EQ(o.exit, 0) << o.err;
  const std::string command = "cd '" + home.dir().string() +
                              "' && (cmake -S B -B B/build && cmake --build B/build && " + environment +
                              " LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR "' ctest --test-dir B/build -V) >log.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << home.read("log.txt");
  return home.read("log.txt");
}

TEST(Package, OneKernelBuildsAndPassesItsTest) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const std::string log = built_and_tested(home, "attention --L 256 --d 64 --batch 1 --heads 2 --variant fused");
  EXPECT_NE(log.find(" elements"), std::string::npos) << log;
  EXPECT_NE(log.find("100% tests passed"), std::string::npos) << log;
}

TEST(Package, KernelsOfTwoArchitecturesServeBoth) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  // sm_80 has no warpgroup.
  const std::string emit = "attention --L 128 --d 64 --batch 1 --heads 2 --archs 80,90a --variant fused,warpgroup";
  EXPECT_NE(built_and_tested(home, emit).find("100% tests passed"), std::string::npos);
  const Json manifest = parse_json(home.read("B/manifest.json"));
  EXPECT_EQ(manifest["pipelines"][0]["arch"], "sm_90a");
  EXPECT_EQ(manifest["pipelines"][1]["arch"], "sm_80");
  const std::string test = "cd '" + home.dir().string() +
                           "' && LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR
                           "' ROOFGEN_SIM_DEVICE=a100-sxm-80 B/build/attention_self_test >run.txt";
  EXPECT_EQ(std::system(test.c_str()), 0) << home.read("run.txt");
}

/// The bundle `B` made again from its manifest, which is all that the other home has of it.
void expect_made_again(const Home& home, const std::string& arguments) {
  const Home other;
  other.write("manifest.json", home.read("B/manifest.json"));
  const Outcome o = other.run("emit " + arguments + " --manifest manifest.json -o B");
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_FALSE(fs::exists(other.dir() / "data/evaluations.sqlite")) << "neither store nor search";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(home.dir() / "B")) {
    const std::string name = "B/" + entry.path().filename().string();
    EXPECT_EQ(home.read(name), other.read(name)) << name;
    ++files;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(other.dir() / "B"), fs::directory_iterator()), files);
}

TEST(Package, AManifestGivesTheSameBytes) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  for (const char* arguments : {"attention --L 128 --d 64 --batch 1 --heads 2 --archs 80,90a",
                                "attention --L 128,200 --d 64 --batch 1 --heads 2 --variant fused,unfused"}) {
    fs::remove_all(home.dir() / "B");
    const Outcome o = home.run(std::string("emit ") + arguments + " --executor sim --evals 1 -o B", kClosedForm);
    ASSERT_EQ(o.exit, 0) << o.err;
    expect_made_again(home, "");
  }
}

TEST(Package, AManifestThatDoesNotFitWritesNothing) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  ASSERT_EQ(home.run("emit rmsnorm --rows 64 --cols 256 --executor sim --evals 1 -o B", kClosedForm).exit, 0);
  const auto refused = [&](const std::string& arguments, int exit, const std::string& words) {
    const Outcome o = home.run("emit " + arguments + " --manifest B/manifest.json -o C");
    EXPECT_EQ(o.exit, exit) << arguments;
    EXPECT_NE(o.err.find(words), std::string::npos) << o.err;
    EXPECT_FALSE(fs::exists(home.dir() / "C")) << arguments;
  };
  refused("rmsnorm --rows 64 --cols 512", 1, "B/manifest.json: error: the manifest is of another bundle: cols is 256");
  refused("rmsnorm --rows 64 --cols 256 --evals 2", 2, "--evals is for a search");
  refused("--rows 64", 2, "--rows needs the op");
  std::string text = home.read("B/manifest.json");
  const size_t at = text.find("\"ptx_sha256\": \"") + 15;
  text.replace(at, 8, "00000000");
  home.write("B/manifest.json", text);
  refused("", 1, "is not the kernel that was verified");
  home.write("B/manifest.json", text.substr(0, text.size() / 2));
  refused("", 1, "B/manifest.json:");
}

TEST(Package, ADeviceWithoutAKernelSkipsTheTest) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const std::string log = built_and_tested(home, "attention --L 256 --d 64 --batch 1 --heads 2 --variant warpgroup",
                                           "ROOFGEN_SIM_DEVICE=a100-sxm-80");
  EXPECT_NE(log.find("no kernel for the architecture of the device: the bundle has sm_90a"), std::string::npos) << log;
  EXPECT_NE(log.find("Skipped"), std::string::npos) << log;
}

}  // namespace
}  // namespace roofgen::test::package_test
