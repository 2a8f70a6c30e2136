// doctor with GPUs, using a fake driver and a fake NVML.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::doctor_test {

namespace {

std::string fakes(const std::string& more = "") {
  return "ROOFGEN_LIBCUDA=" ROOFGEN_FAKE_CUDA " ROOFGEN_LIBNVML=" ROOFGEN_FAKE_NVML " " + more;
}

}  // namespace

TEST(Doctor, ShowsEveryGpu) {
  Home home;
  const Outcome o = home.run("doctor", fakes("ROOFGEN_FAKE_NVML_SCRIPT='processes 2'"));
  for (const char* line :
       {"GPU 0     Fake GPU 0 (sm_90); its roofs: ",
        "          GPU-00010203-0405-0607-0809-0a0b0c0d0e0f, bus 0000:3b:00.0\n",
        "          driver 580.65.06, CUDA 12.8; NVML: yes\n", "          memory 1.0 GiB free of 32.0 GiB\n",
        "          SM clock 1740 of 1980 MHz, memory clock 3201 of 3202 MHz\n", "          power 432 of 700 W, 61 C\n",
        "          other processes that compute on it: 1; they disturb measurements\n", "GPU 1     Fake GPU 1 (sm_90)"})
    EXPECT_NE(o.out.find(line), std::string::npos) << line << "\n" << o.out;
  EXPECT_EQ(o.out.find("GPU 2"), std::string::npos);
}

TEST(Doctor, TheSameAsJson) {
  Home home;
  const Json j = parse_json(home.run("doctor --json", fakes()).out);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j["gpu"]["found"], true);
  EXPECT_EQ(j["gpu"]["name"], "Fake GPU 0");
  ASSERT_EQ(j["gpus"].size(), 2u);
  const Json& gpu = j["gpus"][0];
  EXPECT_EQ(gpu["uuid"], "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(gpu["driver"], "580.65.06");
  EXPECT_EQ(gpu["cuda"], "12.8");
  EXPECT_EQ(gpu["nvml"], true);
  EXPECT_EQ(gpu["memory_bytes"], uint64_t{32} << 30);
  EXPECT_EQ(gpu["free_bytes"], uint64_t{1} << 30);
  EXPECT_EQ(gpu["sm_mhz"], 1740);
  EXPECT_EQ(gpu["power_limit_w"], 700);
  EXPECT_EQ(gpu["other_processes"], 0);
  EXPECT_EQ(j["gpus"][1]["nvml"], false) << "the NVML of this test knows only the first";
  EXPECT_TRUE(j["gpus"][1]["other_processes"].is_null());
}

TEST(Doctor, WithoutNvmlNumbersAreUnknown) {
  Home home;
  const std::string before = "ROOFGEN_LIBCUDA=" ROOFGEN_FAKE_CUDA " ROOFGEN_LIBNVML=/no/such/nvml";
  EXPECT_NE(home.run("doctor", before).out.find("NVML: no, so clocks, power and other processes are unknown\n"),
            std::string::npos);
  const Json j = parse_json(home.run("doctor --json", before).out);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j["gpus"][0]["nvml"], false);
  EXPECT_TRUE(j["gpus"][0]["power_w"].is_null());
  EXPECT_TRUE(j["gpus"][0]["other_processes"].is_null());
}

TEST(Doctor, ReportsWhyAGpuCannotBeOpened) {
  Home home;
  const Outcome o = home.run("doctor", fakes("ROOFGEN_FAKE_CUDA_SCRIPT='context fails'"));
  EXPECT_NE(o.out.find("GPU 0     cannot be used: creating a context: out of memory"), std::string::npos) << o.out;
  const Outcome none = home.run("doctor", fakes("ROOFGEN_FAKE_CUDA_SCRIPT='no device'"));
  EXPECT_NE(none.out.find("GPU       none: the CUDA driver finds no GPU\n"), std::string::npos) << none.out;
}

}  // namespace roofgen::test::doctor_test
