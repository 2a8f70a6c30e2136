// Valid and invalid flags of a measured run, without a GPU and with an unusable one.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::gpu_flags_test {

namespace {

const std::string kTiny = "tune attention --L 64 --d 32 --batch 1 --heads 1 --evals 2 ";
const std::string kNoDriver = "ROOFGEN_LIBCUDA=/no/such/libcuda.so.1";
const std::string kFake = "ROOFGEN_LIBCUDA=" ROOFGEN_FAKE_CUDA " ROOFGEN_LIBNVML=/no/such/nvml";

class GpuFlags : public ::testing::Test {
 protected:
  void expect(const std::string& arguments, int exit, const std::string& message,
              const std::string& before = kNoDriver) {
    const Outcome o = home.run(arguments, before);
    EXPECT_EQ(o.exit, exit) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(message), std::string::npos) << arguments << "\n" << o.err;
    if (exit == 2 || exit == 3) {
      EXPECT_EQ(o.out, "") << arguments;
    }
    EXPECT_EQ(o.err.find("e+308"), std::string::npos);
    EXPECT_LT(o.err.size(), 600u) << o.err;
  }
  Home home;
};

TEST_F(GpuFlags, WrongValuesAreUsageErrorsInOneLine) {
  expect(kTiny + "--timeout nan", 2, "nan: a number of seconds from 0.1 to 3600 was expected");
  expect(kTiny + "--timeout 0", 2, "0: a number of seconds from 0.1 to 3600 was expected");
  expect(kTiny + "--time nan", 2, "nan: a number of seconds");
  expect(kTiny + "--time 5s", 2, "5s: a number of seconds");
  expect(kTiny + "--min-score nan", 2, "nan: a score from 0 to 1 was expected");
  expect(kTiny + "--gpu -1", 2, "-1: a number from 0 to 1023 was expected");
  expect("tune attention --L 64 --d 32 --evals 0", 2, "0: a number of at least 1 was expected");
  expect(kTiny + "--protocol burts", 2, "burst");
  expect(kTiny + "--l2 warm", 2, "unknown --l2 \"warm\"");
  expect(kTiny + "--check finalist", 2, "did you mean \"finalists\"?");
  expect(kTiny + "--exhaustive --strategy random", 2, "excludes");
}

TEST_F(GpuFlags, CommandsThatNeedAGpuReportItsAbsence) {
  expect(kTiny + "--executor cuda", 3, "no CUDA driver");
  expect(kTiny + "--record r", 3, "no GPU was found");
  expect(kTiny + "--counters", 3, "--counters needs a GPU");
  expect(kTiny + "--gpu 7", 3, "no CUDA driver");
  expect("roofline --measure", 3, "no CUDA driver");
  EXPECT_FALSE(fs::exists(home.dir() / "r"));
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found";
  expect(kTiny + "--protocol burst --l2 hot", 0, "warning: --protocol has no effect: no GPU is used");
}

TEST_F(GpuFlags, MeasuringDrawsNothingAndIsOfThisMachine) {
  expect("roofline --measure --html x.html", 2, "--measure draws no plot");
  expect("roofline --measure --device a10", 2, "cannot measure a10");
  EXPECT_FALSE(fs::exists(home.dir() / "x.html"));
}

TEST_F(GpuFlags, PlacesThatCannotBeWrittenAreFoundBeforeTheWork) {
  expect("roofline --measure --output /proc/x.json", 1, "/proc/x.json: error: cannot be written", kFake);
  expect("roofline --measure --output " + home.dir().string(), 1, "is a directory", kFake);
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found";
  const Outcome o = home.run(kTiny + "--html no/such/folder/x.html", kNoDriver);
  EXPECT_EQ(o.exit, 1);
  EXPECT_EQ(o.out, "");  // nothing was tuned
  EXPECT_NE(o.err.find("there is no folder no/such/folder"), std::string::npos) << o.err;
  EXPECT_EQ(o.err.find("no GPU is used: "), std::string::npos) << o.err;  // a machine without a GPU is no mistake
}

TEST_F(GpuFlags, AGpuThatCannotBeUsedIsNotPassedOverInSilence) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found";
  expect(kTiny, 0, "warning: no GPU is used: ", "ROOFGEN_FAKE_CUDA_SCRIPT='context fails' " + kFake);
  expect(kTiny + "--executor cuda", 3, "creating a context", "ROOFGEN_FAKE_CUDA_SCRIPT='context fails' " + kFake);
}

/// The fake driver cannot run roofgen's kernels: everything is rejected, and nothing is labelled as measured.
TEST_F(GpuFlags, NothingIsLabelledMeasuredWithoutATiming) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found";
  const Outcome o = home.run(kTiny + "--executor cuda --json --record r --html page.html", kFake);
  EXPECT_EQ(o.exit, 1) << o.err;
  EXPECT_NE(o.err.find("nothing was verified: run: "), std::string::npos) << o.err;
  const Json j = parse_json(o.out);
  ASSERT_TRUE(j.is_object());
  EXPECT_EQ(j["device"]["origin"], "simulated");
  EXPECT_EQ(j["gpu"]["timed"], 0);
  EXPECT_TRUE(fs::is_empty(home.dir() / "r"));
  EXPECT_FALSE(fs::exists(home.dir() / "page.html"));
  const Outcome text = home.run(kTiny + "--executor cuda", kFake);
  EXPECT_NE(text.out.find("nothing timed"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("time: measured"), std::string::npos) << text.out;
}

}  // namespace

}  // namespace roofgen::test::gpu_flags_test
