// A bundle as its user builds it: with CMake, its own test run by ctest on the simulated driver.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::package_test {
namespace {

/// Emits, configures, builds and tests; the output of ctest.
std::string built_and_tested(const Home& home, const std::string& emit, const std::string& environment = "") {
  const Outcome o = home.run("emit " + emit + " --executor sim --evals 3 -o B");
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
  const std::string log = built_and_tested(home, "attention --L 256 --d 64 --batch 1 --heads 2");
  EXPECT_NE(log.find("error / tolerance"), std::string::npos) << log;
  EXPECT_NE(log.find("100% tests passed"), std::string::npos) << log;
}

TEST(Package, KernelsOfTwoArchitecturesServeBoth) {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const std::string emit = "attention --L 256 --d 64 --batch 1 --heads 2 --archs 80,90a";
  EXPECT_NE(built_and_tested(home, emit).find("100% tests passed"), std::string::npos);
  const Json manifest = Json::parse(home.read("B/manifest.json"));
  EXPECT_EQ(manifest["pipelines"][0]["arch"], "sm_90a");
  EXPECT_EQ(manifest["pipelines"][1]["arch"], "sm_80");
  const std::string test = "cd '" + home.dir().string() +
                           "' && LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR
                           "' ROOFGEN_SIM_DEVICE=a100-sxm-80 B/build/attention_self_test >run.txt";
  EXPECT_EQ(std::system(test.c_str()), 0) << home.read("run.txt");
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
