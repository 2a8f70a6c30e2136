// The simulated driver under the built program and under an independent program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"
#include "tests/support/patterns.h"

namespace roofgen::test::shim_test {
namespace {

const std::string kEnvironment = "LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR "' ROOFGEN_SIM_LOG=sim.log";

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Shim, TheDoctorReportsASimulatedDevice) {
  const Home home;
  const Outcome text = home.run("doctor", kEnvironment);
  EXPECT_NE(text.out.find("NVIDIA H200 (sm_90); its roofs: h200-sxm"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("no GPU is behind it"), std::string::npos) << text.out;
  const Outcome other = home.run("doctor --json", kEnvironment + " ROOFGEN_SIM_DEVICE=a100-sxm-80");
  const Json j = parse_json(other.out);
  EXPECT_EQ(j.at("gpus").at(0).at("arch"), "sm_80");
  EXPECT_EQ(j.at("gpus").at(0).at("simulated"), true);
  EXPECT_EQ(j.at("gpu").at("device"), "a100-sxm-80");
}

/// The values of every "origin" and "origins" below `j`.
void origins(const Json& j, std::set<std::string>& out) {
  if (j.is_object())
    for (const auto& [key, value] : j.items()) {
      if (key == "origin" && value.is_string()) out.insert(value.get<std::string>());
      if (key == "origins")
        for (const auto& [name, v] : value.items()) out.insert(v.get<std::string>());
      // The catalogue's cells cite published measurements.
      if (key != "cells") origins(value, out);
    }
  if (j.is_array())
    for (const Json& item : j) origins(item, out);
}

TEST(Shim, TuneCompletesAndLabelsNothingAsMeasured) {
  const Home home;
  const std::string command =
      "tune attention --L 32 --d 32 --batch 1 --heads 1 --evals 1 --executor cuda --protocol quick --variant "
      "fused,unfused";
  const Outcome run = home.run(command + " --json", kEnvironment);
  if (run.exit == 3 && run.err.find("NVRTC") != std::string::npos) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_NE(run.err.find("the CUDA driver is simulated"), std::string::npos) << run.err;
  const Json j = parse_json(run.out);
  expect_schema("tune", j);
  EXPECT_EQ(j.at("device").at("origin"), "simulated");
  EXPECT_EQ(j.at("verdict").at("origin"), "simulated");
  for (const char* name : {"fused", "unfused"}) {
    bool found = false;
    for (const Json& v : j.at("variants"))
      if (v.at("name") == name) {
        found = true;
        EXPECT_EQ(v.at("verified"), true);
        EXPECT_EQ(v.at("measurement").at("origin"), "simulated");
        EXPECT_GT(v.at("time_us").get<double>(), 0);
      }
    EXPECT_TRUE(found) << name;
  }
  std::set<std::string> all;
  origins(j, all);
  EXPECT_TRUE(all.count("simulated"));
  EXPECT_FALSE(all.count("measured"));
  for (const auto& [name, cell] : j.at("device").at("cells").items()) {
    if (cell.at("source").get<std::string>().find("reported by the driver") != std::string::npos) {
      EXPECT_EQ(cell.at("origin"), "simulated") << name;
    }
  }
  const std::string log = read(home.dir() / "sim.log");
  EXPECT_NE(log.find("CUDA_ERROR_NO_BINARY_FOR_GPU"), std::string::npos) << "the CUBIN is tried first";
  EXPECT_EQ(log.find("finding"), std::string::npos) << log;

  const Outcome text = home.run(command, kEnvironment);
  EXPECT_EQ(text.exit, 0) << text.err;
  const std::string words = test::substituted(text.out, "\n +", " ");
  EXPECT_NE(words.find("nothing was measured"), std::string::npos) << text.out;
  EXPECT_EQ(words.find("(measured"), std::string::npos) << text.out;
  EXPECT_EQ(words.find(", measured"), std::string::npos) << text.out;
  EXPECT_EQ(words.find("time: measured"), std::string::npos) << text.out;
}

/// Variants share temporaries by name; the parts of eight splits are larger than those of six.
void expect_large_enough(const std::vector<std::string>& variants) {
  const Home home;
  const Outcome run = home.run(
      "tune attention --L 16 --kv-len 1024 --d 32 --batch 1 --heads 8 --evals 1 --executor cuda --check gpu "
      "--protocol quick --json --variant " +
          fmt::format("{}", fmt::join(variants, ",")),
      kEnvironment + " ROOFGEN_SIM_DEVICE=rtx-a4000");
  if (run.exit == 3 && run.err.find("NVRTC") != std::string::npos) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit, 0) << run.err;
  std::set<std::string> verified;
  const Json result = parse_json(run.out);
  for (const Json& v : result.at("variants"))
    if (v.at("verified") == true) verified.insert(v.at("name").get<std::string>());
  for (const std::string& name : variants) EXPECT_TRUE(verified.count(name)) << name;
  EXPECT_FALSE(result.at("rejected").contains("gpu fault"));
}

TEST(Shim, EachVariantFindsItsTemporariesLargeEnough) { expect_large_enough({"split6", "split8"}); }

TEST(SlowShim, EachVariantFindsItsTemporariesLargeEnough) {
  expect_large_enough({"split6", "split8", "merged6", "merged8"});
}

TEST(Shim, RefusesFlagsThatNeedAGpu) {
  const Home home;
  for (const char* flag : {"--record r", "--counters", "--sanitize"}) {
    const Outcome run = home.run(std::string("tune attention --L 96 --d 32 --executor cuda ") + flag, kEnvironment);
    EXPECT_EQ(run.exit, 3) << flag << run.err;
    EXPECT_NE(run.err.find("simulated"), std::string::npos) << run.err;
  }
  const Outcome measure = home.run("roofline --measure", kEnvironment);
  EXPECT_EQ(measure.exit, 3) << measure.err;
  EXPECT_NE(measure.err.find("there is no GPU to measure"), std::string::npos) << measure.err;
  EXPECT_FALSE(fs::exists(home.dir() / "data" / "profiles"));
}

TEST(Shim, CeilingsAreLabelledSimulated) {
  const Home home;
  const Outcome run = home.run("roofline --measure --only launch --protocol burst --output p.json",
                               kEnvironment + " ROOFGEN_ALLOW_SIMULATED_DRIVER=1");
  if (run.exit == 3 && run.err.find("NVRTC") != std::string::npos) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run.out.find("measured"), std::string::npos) << run.out;
  std::set<std::string> all;
  const Json profile = parse_json(read(home.dir() / "p.json"));
  origins(profile, all);
  EXPECT_EQ(profile.at("cells").at("launch_us").at("origin"), "simulated");
  EXPECT_FALSE(all.count("measured"));
  EXPECT_FALSE(fs::exists(home.dir() / "data" / "profiles"));
  // No device accepts this profile either.
  const Outcome tuned = home.run("tune attention --L 96 --d 32 --executor sim --profile p.json");
  EXPECT_EQ(tuned.exit, 2);
  EXPECT_THAT(tuned.err, testing::HasSubstr("cell \"launch_us\" has the unknown origin \"simulated\""));
}

#ifdef ROOFGEN_SHIM_PROGRAM
/// Exit status and output of the program of tests/shim/program.cpp.
std::pair<int, std::string> program(const Home& home, const std::string& arguments, const std::string& before = "") {
  const std::string command = "cd '" + home.dir().string() + "' && " + kEnvironment + " " + before +
                              " '" ROOFGEN_SHIM_PROGRAM "' " + arguments + " > out.txt 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(home.dir() / "out.txt")};
}

TEST(Shim, AnIndependentProgramRuns) {
  const Home home;
  const auto [status, out] = program(home, "");
  EXPECT_EQ(status, 0) << out;
  EXPECT_EQ(out.find("FAILED"), std::string::npos) << out;
  EXPECT_NE(out.find("ok transpose is right"), std::string::npos) << out;
  EXPECT_NE(out.find("served by " ROOFGEN_SHIM_DIR "/libcuda.so.1 (simulated)"), std::string::npos) << out;
  const std::string log = read(home.dir() / "sim.log");
  EXPECT_NE(log.find("cuLaunchCooperativeKernel: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)"), std::string::npos)
      << log;
  EXPECT_NE(log.find("cuMemCharm"), std::string::npos) << log;
  EXPECT_EQ(log.find("finding"), std::string::npos) << log;
}

TEST(Shim, AnAccessOutOfBoundsTakesTheContext) {
  const Home home;
  const auto [status, out] = program(home, "fault");
  EXPECT_EQ(status, 0) << out;
  EXPECT_NE(out.find("ok and stays"), std::string::npos) << out;
  EXPECT_NE(read(home.dir() / "sim.log").find("finding out-of-bounds: kernel vadd, CTA 0"), std::string::npos);
}
#endif

}  // namespace
}  // namespace roofgen::test::shim_test
