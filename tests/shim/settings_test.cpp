// Environment settings of the simulated driver: invalid values with their messages, and the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/cli/program.h"
#include "tests/shim/calls.h"

namespace roofgen::test::settings_test {
namespace {

constexpr int kNoDevice = 100;

/// ctest runs each test in a separate process, because cuInit reads the environment only once.
class Settings : public Loaded {
 protected:
  void TearDown() override {
    for (const char* name : {"ROOFGEN_SIM_LOG", "ROOFGEN_SIM_DEVICE", "ROOFGEN_SIM_THREADS", "ROOFGEN_SIM_STRICT",
                             "ROOFGEN_SIM_KEEP_GOING", "ROOFGEN_SIM_ALLOW_UNFENCED"})
      unsetenv(name);
  }
  /// Status of cuInit and its output on stderr.
  std::pair<int, std::string> init() {
    testing::internal::CaptureStderr();
    const int status = cu("cuInit", 0u);
    return {status, testing::internal::GetCapturedStderr()};
  }
  void expect_refused(const char* name, const char* value, const std::string& message) {
    setenv(name, value, 1);
    const auto [status, err] = init();
    EXPECT_EQ(status, kNoDevice) << value;
    EXPECT_NE(err.find(message + "\n"), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    unsetenv(name);
  }
  int look_up(const char* name, int version = 13000) {
    void* found = nullptr;
    int how = -1;
    EXPECT_LE(cu("cuGetProcAddress_v2", name, &found, version, 0ull, &how), 1);
    EXPECT_EQ(found, nullptr) << name;
    return how;
  }

  Home home_;
};

TEST_F(Settings, ThatMakeNoSenseEndCuInitWithALine) {
  expect_refused("ROOFGEN_SIM_DEVICE", "h20-sxm",
                 "cuInit: ROOFGEN_SIM_DEVICE: unknown device \"h20-sxm\"; did you mean \"h200-sxm\"?");
  // No suggestion, although two edits would give a10: the message lists all devices.
  setenv("ROOFGEN_SIM_DEVICE", "v100", 1);
  const auto [status, err] = init();
  EXPECT_EQ(status, kNoDevice);
  EXPECT_NE(err.find("unknown device \"v100\"; known: a10, "), std::string::npos) << err;
  EXPECT_EQ(err.find("v100-sxm2"), std::string::npos) << "too old for kernels: " << err;
  unsetenv("ROOFGEN_SIM_DEVICE");
  expect_refused("ROOFGEN_SIM_DEVICE", "v100-sxm2",
                 "cuInit: ROOFGEN_SIM_DEVICE: the kernels need sm_80 or newer; v100-sxm2 is sm_70: analysis only");
  for (const char* wrong : {"zero", "0", "-1", "4x", "257", "99999999999"})
    expect_refused(
        "ROOFGEN_SIM_THREADS", wrong,
        std::string("cuInit: ROOFGEN_SIM_THREADS=") + wrong + ": a number of cores from 1 to 256 was expected");
  for (const char* setting : {"ROOFGEN_SIM_STRICT", "ROOFGEN_SIM_KEEP_GOING", "ROOFGEN_SIM_ALLOW_UNFENCED"})
    expect_refused(setting, "yes", std::string("cuInit: ") + setting + "=yes: 0 or 1 was expected");
  // With corrected settings the driver starts; nothing of the wrong settings remains.
  setenv("ROOFGEN_SIM_THREADS", "2", 1);
  const auto [good, silence] = init();
  EXPECT_EQ(good, 0);
  EXPECT_EQ(silence, "");
}

TEST_F(Settings, ALogThatCannotBeWrittenGoesToStderr) {
  setenv("ROOFGEN_SIM_LOG", "/nosuch/dir/x", 1);
  const auto [status, err] = init();
  EXPECT_EQ(status, 0);
  EXPECT_NE(err.find("ROOFGEN_SIM_LOG=/nosuch/dir/x: No such file or directory; the log goes to stderr\n"),
            std::string::npos)
      << err;
  EXPECT_NE(err.find("a simulated NVIDIA H200"), std::string::npos) << err;
  testing::internal::CaptureStderr();
  EXPECT_NE(cu("cuCtxSynchronize"), 0);
  const std::string more = testing::internal::GetCapturedStderr();
  EXPECT_NE(more.find("cuCtxSynchronize: CUDA_ERROR_INVALID_CONTEXT"), std::string::npos) << more;
  EXPECT_EQ(more.find("/nosuch"), std::string::npos) << "said once: " << more;
}

TEST_F(Settings, AWrongOneIsSaidOnceWhereTheLogIsStderr) {
  setenv("ROOFGEN_SIM_LOG", "stderr", 1);
  setenv("ROOFGEN_SIM_THREADS", "zero", 1);
  const auto [status, err] = init();
  EXPECT_EQ(status, kNoDevice);
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
}

TEST_F(Settings, ASequenceOfFailedLookupsIsTwoLines) {
  setenv("ROOFGEN_SIM_LOG", (home_.dir() / "log").c_str(), 1);
  EXPECT_EQ(look_up("cuOne"), 1);
  EXPECT_NE(home_.read("log").find(
                "cuGetProcAddress_v2: CUDA_ERROR_NOT_FOUND (500): cuOne of CUDA 13.0: no such function here\n"),
            std::string::npos)
      << "at once: who calls a null pointer writes no more: " << home_.read("log");
  void* there = nullptr;
  int how = -1;
  EXPECT_EQ(look_up("cuTwo"), 1);
  EXPECT_EQ(cu("cuGetProcAddress_v2", "cuInit", &there, 13000, 0ull, &how), 0);
  EXPECT_EQ(look_up("cuTwo"), 1);
  EXPECT_EQ(look_up("cuMulticastBindMem", 13010), 2);
  EXPECT_EQ(cu("cuInit", 0u), 0);
  const std::string log = home_.read("log");
  EXPECT_NE(log.find("cuGetProcAddress: 2 other functions that do not exist here: cuTwo of CUDA 13.0, "
                     "cuMulticastBindMem of CUDA 13.1\n"),
            std::string::npos)
      << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  // An existing but unsupported entry point is found; calling it logs a line.
  EXPECT_EQ(cu("cuGetProcAddress_v2", "cuMipmappedArrayCreate", &there, 13000, 0ull, &how), 0);
  EXPECT_TRUE(there);
  EXPECT_EQ(home_.read("log"), log);
  EXPECT_EQ(cu("cuMipmappedArrayCreate"), 801);
  EXPECT_NE(home_.read("log").find("cuMipmappedArrayCreate: CUDA_ERROR_NOT_SUPPORTED (801)"), std::string::npos);
  // A new sequence of look-ups logs its first line immediately; earlier lines are not repeated.
  EXPECT_EQ(cu("cuCtxSynchronize"), 201);
  EXPECT_EQ(look_up("cuTwo"), 1);
  EXPECT_EQ(look_up("cuThree"), 1);
  EXPECT_NE(home_.read("log").find("(500): cuThree of CUDA 13.0: no such function here\n"), std::string::npos)
      << home_.read("log");
}

}  // namespace
}  // namespace roofgen::test::settings_test
