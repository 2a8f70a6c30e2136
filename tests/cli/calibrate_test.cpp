// roofgen calibrate as a user runs it: exit codes, one-line errors, and the overlay that profile takes.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::calibrate_test {

namespace {

// All lanes of a warp use one bank.
const char* const kKernel = R"(
__global__ void conflicts(float* y) {
  __shared__ float s[1024];
  const int t = threadIdx.x;
  for (int i = 0; i < 64; ++i) s[(t * 32 + i) % 1024] = i;
  __syncthreads();
  y[blockIdx.x * 64 + t] = s[t];
}
)";
const char* const kLaunch = "k.cu --grid 2048 --block 64 --args args.json --device a100-sxm-80 ";

class Calibrate : public ::testing::Test {
 protected:
  void SetUp() override {
    home.write("k.cu", kKernel);
    home.write("args.json", R"([{"name": "y", "type": "f32", "size": 131072}])");
    home.write("times.json", times("\"time_us\": 10"));
  }
  static std::string times(const std::string& time) {
    return R"({"schema": "roofgen.times.1", "measured": "by a test", "kernels": [
  {"family": "a", "file": "k.cu", "grid": [2048], "block": [64], "args": "args.json", )" +
           time + "}]}";
  }
  void refused(const std::string& flags, int exit, const std::string& line) {
    const Outcome o = home.run("calibrate " + flags);
    EXPECT_EQ(o.exit, exit) << flags;
    EXPECT_EQ(o.out, "") << flags;
    EXPECT_NE(o.err.find(line), std::string::npos) << flags << "\n" << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
  double profiled(const std::string& flags) {
    const Outcome o = home.run("profile " + (kLaunch + flags) + " --top 0 --json");
    EXPECT_EQ(o.exit, 0) << o.err;
    return parse_json(o.out)["models"]["event"]["time_us"].get<double>();
  }
  Home home;
};

TEST_F(Calibrate, BadInput) {
  refused("--device a100-sxm-80", 2, "--times is required");
  refused("--times times.json", 2, "--device is required");
  refused("--device a100-sxm-80 --times none.json", 2, "none.json: error: cannot be read: No such file or directory");
  refused("--device a100 --times times.json", 2, "unknown device \"a100\"");
  refused("--device v100-sxm2 --times times.json", 3, "v100-sxm2 has no ");
  refused("--device a100-sxm-80 --times times.json --hold-out b", 2, "--hold-out b: no kernel is of this family");
  refused("--device a100-sxm-80 --times times.json -o none/x.json", 1, "none/x.json");
  home.write("times.json", times("\"time_us\": -1"));
  refused("--device a100-sxm-80 --times times.json", 2,
          "times.json:2:88: error: kernel 1: \"time_us\" is a time in microseconds above 0, up to 1e+09");
}

TEST_F(Calibrate, ProfileTakesTheOverlay) {
  if (!has_nvrtc(home) || home.run(std::string("profile ") + kLaunch).exit == 3)
    GTEST_SKIP() << "no NVRTC or nvdisasm on this machine";
  const double before = profiled("");
  home.write("times.json", times("\"time_us\": " + std::to_string(2 * before)));
  const Outcome o = home.run("calibrate --device a100-sxm-80 --times times.json -o fitted.json --json");
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json report = parse_json(o.out);
  EXPECT_EQ(report["schema"], "roofgen.calibration.1");
  EXPECT_EQ(report["times"][0]["measured"], "by a test");
  EXPECT_LT(report["objective"]["fitted"], report["objective"]["before"]);
  EXPECT_TRUE(report["held_out"].is_null());
  const Json cells = parse_json(home.read("fitted.json"))["cells"];
  ASSERT_TRUE(cells.contains("smem_wavefront_cycles")) << cells;
  EXPECT_EQ(cells["smem_wavefront_cycles"]["origin"], "model");
  EXPECT_EQ(cells["smem_wavefront_cycles"]["source"].get<std::string>().substr(0, 46),
            "fitted on 1 kernel of family a (times.json), 9");
  EXPECT_NEAR(profiled("--profile fitted.json") / before, 2, 0.2);
  EXPECT_EQ(profiled("--no-profile"), before);
}

}  // namespace

}  // namespace roofgen::test::calibrate_test
