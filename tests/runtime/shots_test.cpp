// Timed shots, and the GPU's identity and state, with fake drivers.
#include <gtest/gtest.h>

#include "runtime/cuda/gate.h"
#include "runtime/cuda/nvml.h"
#include "tests/runtime/fake_driver.h"

namespace roofgen::shots_test {
namespace {

using testing::fake_binary;
using testing::fill_launch;

class Shots : public testing::FakeDriver {
 protected:
  void SetUp() override {
    FakeDriver::SetUp();
    nvml_ = dlopen(ROOFGEN_FAKE_NVML, RTLD_NOW);
    ASSERT_NE(nvml_, nullptr) << dlerror();
    nvml("");
  }
  void nvml(const char* what) { reinterpret_cast<void (*)(const char*)>(dlsym(nvml_, "fake_nvml_script"))(what); }
  void with_nvml(const char* library = ROOFGEN_FAKE_NVML) { setenv("ROOFGEN_LIBNVML", library, 1); }

  void prepare() {
    gpu_ = open();
    buffer_ = *gpu_->allocate(1024, "out");
    module_ = *gpu_->load(fake_binary("fill"));
    other_ = *gpu_->load(fake_binary("other"));
  }
  Shot shot(int launches = 1) {
    Shot out;
    for (int i = 0; i < launches; ++i) out.steps.push_back({i % 2 ? other_ : module_, fill_launch(buffer_, 7, 1000)});
    return out;
  }
  std::vector<Sample> time(const std::vector<Shot>& shots) {
    size_t done = 99;
    auto samples = gpu_->time(shots, &done);
    EXPECT_TRUE(samples) << to_string(samples.error());
    EXPECT_EQ(done, shots.size());
    return samples ? *samples : std::vector<Sample>(shots.size());
  }
  /// The log of the last shot, from its first `launch roofgen_sweep` or stamp on.
  std::string last_shot(const char* first) {
    std::string all = log();
    return all.substr(all.rfind(first));
  }

  void* nvml_ = nullptr;
  std::unique_ptr<GpuExecutor> gpu_;
  DevicePtr buffer_;
  ModuleId module_, other_;
};

TEST_F(Shots, FlushAndGatePrecedeTheFirstEventAndOnlyTheLaunchIsBetweenTheTwo) {
  prepare();
  time({shot()});
  clear_log();
  std::vector<Sample> samples = time({shot()});
  EXPECT_NEAR(samples[0].time_ns, 12'000, 10);
  EXPECT_EQ(log(),
            "memset\nlaunch roofgen_sweep write\nlaunch roofgen_sweep read\n"
            "launch roofgen_gate\nlaunch roofgen_stamp\nrecord\nlaunch fill\nrecord\nlaunch roofgen_stamp\n"
            "synchronize\nsynchronize\n");
}

TEST_F(Shots, HotShotsDoNotFlush) {
  prepare();
  Shot hot = shot(3);
  hot.flush = false;
  EXPECT_NEAR(time({hot})[0].time_ns, 36'000, 10);
  EXPECT_EQ(log().find("sweep"), std::string::npos);
  EXPECT_EQ(log().find("reset_l2"), std::string::npos);
  EXPECT_NE(
      log().find("launch roofgen_gate\nlaunch roofgen_stamp\nrecord\nlaunch fill\nlaunch other\nlaunch fill\nrecord\n"),
      std::string::npos)
      << log();
}

TEST_F(Shots, PersistingLinesAreResetOnlyWhereThereAreAny) {
  script("no persisting L2");
  prepare();
  time({shot()});
  EXPECT_EQ(log().find("reset_l2"), std::string::npos);
  for (const char* what : {"no persisting reset; no L2 size", "persisting reset fails"}) {  // neither is a failure
    script(what);
    prepare();
    time({shot(), shot()});
    const std::string all = log();
    const size_t once = all.find("reset_l2\nlaunch roofgen_sweep write");
    ASSERT_NE(once, std::string::npos) << all;
    EXPECT_EQ(all.find("reset_l2", once + 1), std::string::npos) << all;
  }
}

TEST_F(Shots, GraphsAreBuiltOncePerShotAndFreed) {
  prepare();
  {
    Shot a = shot(4), b = shot(2);
    a.graph = b.graph = true;
    const std::vector<Sample> samples = time({a, b, a, a});
    EXPECT_NEAR(samples[0].time_ns, 48'000, 10);
    EXPECT_NEAR(samples[1].time_ns, 24'000, 10);
    EXPECT_NEAR(samples[3].time_ns, 48'000, 10);
    const std::string all = log();
    size_t built = 0;
    for (size_t at = 0; (at = all.find("instantiate", at)) != std::string::npos; ++at) ++built;
    EXPECT_EQ(built, 2u);
    EXPECT_NE(all.find("begin_capture\ncapture fill\ncapture other\ncapture fill\ncapture "
                       "other\nend_capture\ninstantiate 4\nupload\n"),
              std::string::npos)
        << all;
    EXPECT_NE(all.find("launch roofgen_gate\nlaunch roofgen_stamp\nrecord\nlaunch_graph\nrecord\n"), std::string::npos)
        << all;
  }
  gpu_.reset();
  EXPECT_EQ(live(), 0);
}

TEST_F(Shots, DifferentArgumentsAreDifferentGraphs) {
  prepare();
  Shot a = shot(), b = shot();
  a.graph = b.graph = true;
  b.steps[0].launch.args[1].bits = 9;
  time({a, b});
  std::vector<std::byte> out(1);
  ASSERT_TRUE(gpu_->read(buffer_, out));
  EXPECT_EQ(out[0], std::byte{9});
}

TEST_F(Shots, DependentLaunchesOverlapWithinAShotOnly) {
  prepare();
  Shot both = shot(2);
  for (Step& step : both.steps) step.launch.overlap = true;
  time({both});
  EXPECT_NE(log().find("record\nlaunch fill\nlaunch other overlap=1\nrecord"), std::string::npos) << log();
  script("sm_80");
  prepare();
  both = shot(2);
  for (Step& step : both.steps) step.launch.overlap = true;
  time({both});
  EXPECT_NE(log().find("record\nlaunch fill\nlaunch other\nrecord"), std::string::npos) << log();
}

TEST_F(Shots, ALateHostIsGivenALongerGate) {
  script("late host 2");
  prepare();
  const std::vector<Sample> samples = time({shot(), shot()});
  EXPECT_NEAR(samples[0].time_ns, 12'000, 10);
  const std::string all = log();
  size_t gates = 0;
  for (size_t at = 0; (at = all.find("roofgen_gate", at)) != std::string::npos; ++at) ++gates;
  EXPECT_EQ(gates, 4u);  // three attempts at the first shot, one at the second
}

TEST_F(Shots, OneLateHostLengthensNoLaterGate) {
  cuda::GateFactor factor;
  EXPECT_EQ(factor.of_attempt(0), 1u);
  EXPECT_EQ(factor.of_attempt(3), 8u);
  for (int i = 0; i < 50; ++i) factor.ended(i % 2);  // late, in time, late: never two in a row
  EXPECT_EQ(factor.of_attempt(0), 1u);
  factor.ended(1), factor.ended(1);
  EXPECT_EQ(factor.of_attempt(0), 2u);
  factor.ended(3);
  EXPECT_EQ(factor.of_attempt(0), 4u);
  EXPECT_EQ(factor.of_attempt(1), 8u);
  for (int i = 0; i < 99; ++i) factor.ended(0);
  EXPECT_EQ(factor.of_attempt(0), 4u);
  factor.ended(0);
  EXPECT_EQ(factor.of_attempt(0), 2u);
  for (int i = 0; i < 300; ++i) factor.ended(0);
  EXPECT_EQ(factor.of_attempt(0), 1u);
  for (int i = 0; i < 100; ++i) factor.ended(4);
  EXPECT_EQ(factor.of_attempt(0), 64u);
}

TEST_F(Shots, TheClockIsThatOfTheShot) {
  prepare();
  EXPECT_NEAR(time({shot()})[0].sm_mhz, 1500, 1);
  script("slow clock");
  prepare();
  EXPECT_NEAR(time({shot()})[0].sm_mhz, 700, 1);
  script("idle clock stands");  // the wait for the host must not count
  prepare();
  EXPECT_NEAR(time({shot()})[0].sm_mhz, 1500, 1);
}

TEST_F(Shots, AFaultEndsTheRowAndIsNamed) {
  script("fault in other");
  prepare();
  Shot bad = shot(2);
  const std::vector<Shot> row = {shot(), shot(), bad, shot()};
  size_t done = 99;
  auto samples = gpu_->time(row, &done);
  ASSERT_FALSE(samples);
  EXPECT_EQ(done, 2u);
  EXPECT_NE(samples.error().message.find("an illegal memory access was encountered"), std::string::npos)
      << samples.error().message;
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  EXPECT_FALSE(gpu_->time(row));
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
}

TEST_F(Shots, InvalidShotsAreRefused) {
  prepare();
  EXPECT_FALSE(gpu_->time(std::vector<Shot>(1)));
  EXPECT_EQ(gpu_->fault(), Fault::kRefused);
  Shot unknown = shot();
  unknown.steps[0].module = {77};
  EXPECT_FALSE(gpu_->time(std::vector<Shot>{unknown}));
  EXPECT_TRUE(gpu_->time(std::vector<Shot>{shot()}));
}

TEST_F(Shots, ReportsMissingMemoryForTheFlush) {
  script("out of memory above 100000");
  prepare();
  auto samples = gpu_->time(std::vector<Shot>{shot()});
  ASSERT_FALSE(samples);
  EXPECT_NE(samples.error().message.find("allocating 4194304 bytes of GPU memory for emptying L2: out of memory"),
            std::string::npos)
      << samples.error().message;
  EXPECT_EQ(gpu_->fault(), Fault::kMemory);
}

TEST_F(Shots, DeviceErrorsAreASuspicionOfLoss) {
  script("status 214");
  prepare();
  EXPECT_FALSE(gpu_->time(std::vector<Shot>{shot()}));
  EXPECT_EQ(gpu_->fault(), Fault::kLost);
  script("lost after 1");
  prepare();
  EXPECT_TRUE(gpu_->run(module_, fill_launch(buffer_, 1, 8), {}));
  EXPECT_FALSE(gpu_->run(module_, fill_launch(buffer_, 1, 8), {}));
  EXPECT_EQ(gpu_->fault(), Fault::kLost);
}

TEST_F(Shots, EverythingIsGivenBack) {
  prepare();
  time({shot()});
  EXPECT_GT(live(), 0);
  gpu_.reset();
  EXPECT_EQ(live(), 0);
}

TEST_F(Shots, NvmlTellsAboutTheBoard) {
  with_nvml();
  nvml("processes 3");
  prepare();
  const GpuIdentity identity = gpu_->identity();
  EXPECT_EQ(identity.driver, "580.65.06");
  EXPECT_EQ(identity.max_sm_mhz, 1980);
  EXPECT_EQ(identity.default_sm_mhz, 1830);
  EXPECT_EQ(identity.max_memory_mhz, 3202);
  EXPECT_EQ(identity.power_limit_w, 700);
  auto state = gpu_->state();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->other_processes, 2);
  EXPECT_EQ(state->sm_mhz, 1740);
  EXPECT_EQ(state->memory_mhz, 3201);
  const Sample sample = time({shot()})[0];
  EXPECT_NEAR(sample.power_w, 432.1, 1e-9);
  EXPECT_EQ(sample.temperature_c, 61);
  EXPECT_EQ(sample.limits, kLimitPowerCap);
  gpu_.reset();
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(nvml_, "fake_nvml_started"))(), 0);
}

TEST_F(Shots, WithoutNvmlTheSamplesDoNotKnow) {
  prepare();
  const Sample sample = time({shot()})[0];
  EXPECT_EQ(sample.power_w, 0);
  EXPECT_EQ(sample.temperature_c, 0);
  EXPECT_EQ(sample.limits, 0u);
  EXPECT_GT(sample.sm_mhz, 0);
}

TEST_F(Shots, NvmlFindsTheGpuByItsBusToo) {
  with_nvml();
  nvml("no uuid; no default clock");
  prepare();
  EXPECT_EQ(gpu_->identity().power_limit_w, 700);
  EXPECT_EQ(gpu_->identity().default_sm_mhz, 1980);  // the highest clock, without a known default
}

TEST_F(Shots, OldNvmlHasOtherNames) {
  with_nvml(ROOFGEN_FAKE_NVML_OLD);
  setenv("ROOFGEN_FAKE_NVML_SCRIPT", "processes 70", 1);  // more than one query returns
  prepare();
  EXPECT_EQ(gpu_->state()->other_processes, 69);
  EXPECT_EQ(time({shot()})[0].limits, kLimitThermalSw);
}

TEST_F(Shots, ReportsWhyNvmlFails) {
  auto reason = [&](const char* library, const char* what) {
    with_nvml(library);
    nvml(what);
    cuda::Nvml made;
    made.open("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "0000:3b:00.0");
    EXPECT_FALSE(made.available());
    EXPECT_EQ(made.power_w(), 0);
    EXPECT_EQ(made.processes(), 0);
    return made.why_not();
  };
  EXPECT_EQ(reason(ROOFGEN_FAKE_NVML, "no init"), "starting NVML: Driver Not Loaded");
  EXPECT_EQ(reason(ROOFGEN_FAKE_NVML, "no uuid; no bus id"), "finding the GPU in NVML: Not Found");
  EXPECT_EQ(reason("libm.so.6", ""), "libm.so.6 is no NVML: it has no nvmlInit_v2");
  EXPECT_NE(reason("/no/such/nvml", "").find("/no/such/nvml"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::shots_test
