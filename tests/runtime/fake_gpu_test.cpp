// The scripted GPU must obey the executor interface, so that tests on it are meaningful.
#include "tests/support/fake_gpu.h"

#include <gtest/gtest.h>

namespace roofgen::test::fake_gpu_test {
namespace {

Binary binary(const std::string& entry) {
  Binary out;
  out.entry = out.digest = entry;
  return out;
}

Launch launch_on(DevicePtr ptr) {
  Launch out;
  out.args = {{"x", true, ptr.address, 8}};
  return out;
}

TEST(FakeGpu, TimesAsScriptedAndTracksL2) {
  FakeScript script;
  script.step_ns = [](const FakeStep& step) { return step.cold ? 3000.0 : 1000.0; };
  FakeGpu gpu(script);
  auto x = gpu.allocate(1 << 20, "x");
  auto big = gpu.allocate(uint64_t{80} << 20, "big");
  auto module = gpu.load(binary("k"));
  ASSERT_TRUE(x && big && module);
  Step on_x{*module, launch_on(*x)}, on_big{*module, launch_on(*big)};
  std::vector<Shot> shots = {
      {{on_x}, true, false}, {{on_x}, false, false}, {{on_x, on_x}, true, true}, {{on_big, on_big}, false, false}};
  auto samples = gpu.time(shots);
  ASSERT_TRUE(samples);
  EXPECT_EQ((*samples)[0].time_ns, 3000);
  EXPECT_EQ((*samples)[1].time_ns, 1000);
  EXPECT_EQ((*samples)[2].time_ns, 4000);
  EXPECT_EQ((*samples)[3].time_ns, 6000);  // larger than L2, so never in L2
  EXPECT_GT(gpu.now_s, 0);
}

TEST(FakeGpu, AFaultTakesAllHandlesAlong) {
  FakeScript script;
  script.faults = {{Fault::kKernel, "bad", "", 2}};
  FakeGpu gpu(script);
  auto x = gpu.allocate(256, "x");
  auto good = gpu.load(binary("good")), bad = gpu.load(binary("bad"));
  ASSERT_TRUE(x && good && bad);
  std::vector<Shot> shots = {{{{*good, launch_on(*x)}}}, {{{*bad, launch_on(*x)}}}, {{{*bad, launch_on(*x)}}}};
  size_t done = 9;
  const uint64_t before = gpu.generation();
  EXPECT_FALSE(gpu.time(shots, &done));
  EXPECT_EQ(done, 2u);
  EXPECT_EQ(gpu.fault(), Fault::kKernel);
  EXPECT_GT(gpu.generation(), before);
  EXPECT_FALSE(gpu.run(*good, launch_on(*x), {}));
  EXPECT_EQ(gpu.fault(), Fault::kRefused);
  EXPECT_EQ(gpu.buffers_in_use(), 0u);
}

TEST(FakeGpu, RunsOutOfMemoryHangsAndIsLost) {
  FakeScript script;
  script.memory_bytes = 1000;
  script.step_ns = [](const FakeStep&) { return std::numeric_limits<double>::infinity(); };
  FakeGpu gpu(script);
  EXPECT_TRUE(gpu.allocate(600, "a"));
  EXPECT_FALSE(gpu.allocate(600, "b"));
  EXPECT_EQ(gpu.fault(), Fault::kMemory);
  auto module = gpu.load(binary("k"));
  ASSERT_TRUE(module);
  EXPECT_FALSE(gpu.run(*module, {}, {}));
  EXPECT_EQ(gpu.fault(), Fault::kTimeout);
  gpu.lose();
  EXPECT_FALSE(gpu.state());
  EXPECT_EQ(gpu.fault(), Fault::kLost);
}

}  // namespace
}  // namespace roofgen::test::fake_gpu_test
