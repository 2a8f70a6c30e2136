// The GPU worker: real processes, each with a fake driver. The script is in the environment, so workers started later
// may get another script.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "runtime/cuda/wire.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/process.h"

namespace roofgen::gpu_worker_test {
namespace {

using testing::fake_binary;
using testing::fill_launch;

class GpuWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("ROOFGEN_LIBCUDA", ROOFGEN_FAKE_CUDA, 1);
    setenv("ROOFGEN_LIBNVML", ROOFGEN_FAKE_NVML, 1);
    setenv("ROOFGEN_FAKE_NVML_SCRIPT", "", 1);
    script("");
  }
  void script(const std::string& what) { setenv("ROOFGEN_FAKE_CUDA_SCRIPT", what.c_str(), 1); }
  Result<std::unique_ptr<GpuExecutor>> make(double timeout_s = 60) {
    GpuWorkerOptions options;
    options.timeout_s = timeout_s;
    options.executable = executable_;
    options.ordinal = ordinal_;
    options.warn = [this](const std::string& line) { warnings_.push_back(line); };
    return make_gpu_worker(std::move(options));
  }
  /// Starts a worker with this script, and gives it three kernels and a buffer.
  void start(const std::string& what = "", double timeout_s = 60) {
    script(what);
    auto made = make(timeout_s);
    ASSERT_TRUE(made) << to_string(made.error());
    gpu_ = std::move(*made);
    equip();
  }
  void equip() {
    auto buffer = gpu_->allocate(1024, "out");
    ASSERT_TRUE(buffer) << to_string(buffer.error());
    buffer_ = *buffer;
    fill_ = *gpu_->load(fake_binary("fill"));
    other_ = *gpu_->load(fake_binary("other"));
  }
  Result<RunResult> run(ModuleId module) { return gpu_->run(module, fill_launch(buffer_, 7, 1000), {}); }
  Shot shot(ModuleId module) {
    Shot out;
    out.steps = {{module, fill_launch(buffer_, 7, 1000)}};
    return out;
  }
  /// The GPU is usable after the failure, with new handles only.
  void expect_recovered(uint64_t generation) {
    EXPECT_EQ(gpu_->generation(), generation);
    auto stale = run(fill_);
    ASSERT_FALSE(stale);
    EXPECT_EQ(stale.error().message.rfind("the kernel is of an earlier GPU worker; that ended: ", 0), 0u)
        << stale.error().message;
    EXPECT_EQ(gpu_->fault(), Fault::kRefused);
    std::byte one{};
    EXPECT_FALSE(gpu_->read(buffer_, {&one, 1}));
    EXPECT_FALSE(gpu_->write(buffer_, {&one, 1}));
    EXPECT_FALSE(gpu_->poison(buffer_));
    gpu_->release(buffer_);
    gpu_->unload(fill_);
    const DevicePtr old = buffer_;
    equip();
    Launch launch = fill_launch(old, 1, 8);
    EXPECT_FALSE(gpu_->run(fill_, launch, {})) << "a new kernel with an old buffer";
    auto again = run(fill_);
    EXPECT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(gpu_->generation(), generation);
  }

  std::string executable_;
  int ordinal_ = 0;
  std::vector<std::string> warnings_;
  std::unique_ptr<GpuExecutor> gpu_;
  DevicePtr buffer_;
  ModuleId fill_, other_;
};
using SlowGpuWorker = GpuWorker;

TEST_F(GpuWorker, BehavesLikeTheInProcessExecutor) {
  start();
  EXPECT_EQ(gpu_->info().device_name, "Fake GPU 0");
  EXPECT_EQ(gpu_->info().arch, "sm_90");
  EXPECT_EQ(gpu_->info().driver.sms, 64);
  EXPECT_EQ(gpu_->identity().uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(gpu_->identity().driver, "580.65.06");
  EXPECT_EQ(gpu_->identity().default_sm_mhz, 1830);
  EXPECT_EQ(gpu_->origin(), Origin::kMeasured);
  EXPECT_EQ(gpu_->generation(), 0u);
  EXPECT_EQ(buffer_.address % 256, 0u);
  auto ran = run(fill_);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_NEAR(*ran->time_ns, 12'000, 10);
  std::vector<std::byte> out(1024);
  std::vector<bool> written;
  ASSERT_TRUE(gpu_->read(buffer_, out, &written));
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], i < 1000 ? std::byte{7} : std::byte{0xff});
    ASSERT_EQ(written[i], i < 1000) << i;
  }
  const std::byte three[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(gpu_->write({buffer_.address + 5}, three));  // addresses within a buffer are valid, too
  ASSERT_TRUE(gpu_->read({buffer_.address + 4}, std::span(out).first(5)));
  EXPECT_EQ(out[0], std::byte{7});
  EXPECT_EQ(out[3], std::byte{3});
  ASSERT_TRUE(gpu_->poison(buffer_));
  ASSERT_TRUE(gpu_->read({buffer_.address + 3}, std::span(out).first(9), &written));
  EXPECT_EQ(written, std::vector<bool>(9, false));
  EXPECT_EQ(gpu_->state()->free_bytes, uint64_t{1} << 30);
  gpu_->unload(fill_);
  EXPECT_FALSE(run(fill_));
  EXPECT_EQ(gpu_->fault(), Fault::kRefused);
  EXPECT_TRUE(run(other_));
  gpu_->release(buffer_);
  EXPECT_FALSE(gpu_->read(buffer_, std::span(out).first(1)));
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(SlowGpuWorker, BigInputsTravelInParts) {
  start();
  const uint64_t bytes = (uint64_t{70} << 20) + 5;
  auto value = [](uint64_t at) { return static_cast<std::byte>((at * 2654435761u) >> 16); };
  auto buffer = gpu_->allocate(bytes, "in", [&](uint64_t offset, std::span<std::byte> part) {
    for (size_t i = 0; i < part.size(); ++i) part[i] = value(offset + i);
  });
  ASSERT_TRUE(buffer) << to_string(buffer.error());
  std::vector<std::byte> out(bytes - 3);
  ASSERT_TRUE(gpu_->read({buffer->address + 3}, out));
  for (size_t i = 0; i < out.size(); i += 4093) ASSERT_EQ(out[i], value(i + 3)) << i;
  std::fill(out.begin(), out.end(), std::byte{42});
  ASSERT_TRUE(gpu_->write({buffer->address + 3}, out));
  std::vector<std::byte> back(bytes);
  std::vector<bool> written;
  ASSERT_TRUE(gpu_->read(*buffer, back, &written));
  EXPECT_EQ(back[2], value(2));
  EXPECT_EQ(back[3], std::byte{42});
  EXPECT_EQ(back.back(), std::byte{42});
  EXPECT_EQ(written.size(), bytes);
  EXPECT_FALSE(gpu_->read({buffer->address + 4}, out)) << "past the end";
}

TEST_F(GpuWorker, ShotsTravelWithAllThatBelongsToThem) {
  start("late host 1");
  Shot batch;
  batch.flush = false;
  batch.graph = true;
  for (int i = 0; i < 200; ++i) batch.steps.push_back({i % 2 ? other_ : fill_, fill_launch(buffer_, 7, 8)});
  size_t done = 0;
  auto samples = gpu_->time(std::vector<Shot>{shot(fill_), batch, shot(other_)}, &done);
  ASSERT_TRUE(samples) << to_string(samples.error());
  EXPECT_EQ(done, 3u);
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_NEAR((*samples)[0].time_ns, 12'000, 10);
  EXPECT_NEAR((*samples)[1].time_ns, 200 * 12'000, 200);
  EXPECT_NEAR((*samples)[0].sm_mhz, 1500, 1);
  EXPECT_NEAR((*samples)[2].power_w, 432.1, 1e-9);
  EXPECT_EQ((*samples)[2].temperature_c, 61);
  EXPECT_EQ((*samples)[2].limits, kLimitPowerCap);
  EXPECT_TRUE(gpu_->time({})->empty());
}

TEST_F(GpuWorker, AFaultCostsItsOwnLaunchOnly) {
  start("fault in other");
  ASSERT_TRUE(run(fill_));
  auto fault = run(other_);
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().message,
            "running kernel other: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  EXPECT_TRUE(warnings_.empty()) << "no new worker before one is needed";
  expect_recovered(1);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "the GPU worker is replaced: " + fault.error().message);
  EXPECT_FALSE(run(other_));
  expect_recovered(2);
}

TEST_F(GpuWorker, AFaultAmongShotsNamesTheShot) {
  start("fault in other");
  size_t done = 99;
  auto samples = gpu_->time(std::vector<Shot>{shot(fill_), shot(fill_), shot(other_), shot(fill_)}, &done);
  ASSERT_FALSE(samples);
  EXPECT_EQ(done, 2u);
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  expect_recovered(1);
}

TEST_F(GpuWorker, AHangEndsWithItsTime) {
  start("hang in other", 0.5);
  auto hung = run(other_);
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().message, "other did not end within 0.5 s");
  EXPECT_EQ(gpu_->fault(), Fault::kTimeout);
  EXPECT_TRUE(testing::gpu_workers_of(getpid()).empty()) << "it is still there";
  expect_recovered(1);
  size_t done = 99;
  Shot both = shot(fill_);
  both.steps.push_back({other_, fill_launch(buffer_, 1, 8)});
  auto samples = gpu_->time(std::vector<Shot>{shot(fill_), both}, &done);
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().message, "fill + other did not end within 0.5 s");
  EXPECT_EQ(done, 1u);
  EXPECT_EQ(gpu_->fault(), Fault::kTimeout);
  expect_recovered(2);
}

TEST_F(GpuWorker, ACrashInARunIsTheKernels) {
  start("crash in other");
  auto crash = run(other_);
  ASSERT_FALSE(crash);
  EXPECT_EQ(crash.error().message, "running kernel other: the GPU worker crashed: Segmentation fault");
  ASSERT_EQ(crash.error().notes.size(), 1u);
  EXPECT_EQ(crash.error().notes[0], "the driver is not well");
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  expect_recovered(1);
}

TEST_F(GpuWorker, ADeathBetweenCallsIsNoticedBeforeHandlesAreUsed) {
  start();
  auto workers = testing::gpu_workers_of(getpid());
  ASSERT_EQ(workers.size(), 1u);
  kill(workers[0], SIGKILL);
  ASSERT_TRUE(testing::eventually([&] { return testing::ended(workers[0]); }));
  auto stale = run(fill_);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().message,
            "the kernel is of an earlier GPU worker; that ended: the GPU worker crashed: Killed between two calls");
  expect_recovered(1);
  gpu_.reset();
  EXPECT_TRUE(testing::gpu_workers_of(getpid()).empty());
}

TEST_F(GpuWorker, OutOfMemoryLeavesEverythingAsItWas) {
  start("out of memory above 5000000");
  auto big = gpu_->allocate(6'000'000, "scores");
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().message,
            "allocating 6000000 bytes of GPU memory for scores: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2); "
            "1073741824 of 34359738368 "
            "bytes are free");
  EXPECT_EQ(gpu_->fault(), Fault::kMemory);
  EXPECT_EQ(gpu_->generation(), 0u);
  EXPECT_TRUE(run(fill_));
}

TEST_F(GpuWorker, ARefusedCallChangesNoState) {
  start();
  EXPECT_FALSE(gpu_->load(fake_binary("absent")));
  EXPECT_EQ(gpu_->fault(), Fault::kRefused);
  Launch launch = fill_launch(buffer_, 1, 8);
  launch.smem_bytes = 300'000;
  auto too_much = gpu_->run(fill_, launch, {});
  EXPECT_EQ(too_much.error().message, "kernel fill needs 300000 bytes of shared memory; Fake GPU 0 has 232448");
  launch = fill_launch({0x1000}, 1, 8);
  auto odd = gpu_->run(fill_, launch, {});
  EXPECT_EQ(odd.error().message, "0x1000 is not an address of this GPU worker");
  EXPECT_FALSE(gpu_->time(std::vector<Shot>(1)));
  EXPECT_EQ(gpu_->generation(), 0u);
  EXPECT_TRUE(run(fill_));
}

TEST_F(GpuWorker, TensorMapsAndClustersTravel) {
  start();
  auto module = gpu_->load(fake_binary("mapped"));
  ASSERT_TRUE(module);
  TensorMap map;
  map.dims = {128, 8};
  map.stride_bytes = {256};
  map.box = {64, 8};
  map.swizzle_bytes = 128;
  Launch launch;
  launch.grid = {4, 1, 1};
  launch.block = {32, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.args = {{"A", true, buffer_.address, 8, std::make_shared<const TensorMap>(map)}};
  auto ran = gpu_->run(*module, launch, {});
  EXPECT_TRUE(ran) << to_string(ran.error());
  map.box = {64, 300};
  launch.args[0].map = std::make_shared<const TensorMap>(map);
  EXPECT_EQ(gpu_->run(*module, launch, {}).error().message,
            "kernel mapped: tensor map A: side 1 of the box is 300; 1 to 256 are possible");
  launch.cluster = {3, 1, 1};
  EXPECT_EQ(gpu_->run(*module, launch, {}).error().message,
            "kernel mapped: a grid of 4 x 1 x 1 CTAs cannot be cut into clusters of 3 x 1 x 1");
}

TEST_F(GpuWorker, ADeviceErrorWithAGpuThatIsStillThereIsTheKernels) {
  start("lost after 1");
  ASSERT_TRUE(run(fill_));
  auto lost = run(fill_);
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().message.find("(CUDA_ERROR, 999)"), std::string::npos) << lost.error().message;
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  expect_recovered(1);
}

TEST_F(GpuWorker, AGpuThatNoNewWorkerFindsIsLostForGood) {
  testing::TempDir dir;
  start("status 214; one process, marked by " + (dir / "mark"));
  auto lost = run(fill_);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().message,
            "the GPU is lost: running kernel fill: uncorrectable ECC error encountered (CUDA_ERROR_ECC_UNCORRECTABLE, "
            "214); no new worker "
            "starts (the CUDA driver finds no GPU)");
  EXPECT_EQ(gpu_->fault(), Fault::kLost);
  EXPECT_FALSE(gpu_->allocate(16, "more"));
  EXPECT_EQ(gpu_->fault(), Fault::kLost);
  EXPECT_TRUE(testing::gpu_workers_of(getpid()).empty());
}

TEST_F(GpuWorker, AGpuThatIsGoneAfterAFaultIsLostAtTheNextCall) {
  testing::TempDir dir;
  start("fault in other; one process, marked by " + (dir / "mark"));
  EXPECT_FALSE(run(other_));
  EXPECT_EQ(gpu_->fault(), Fault::kKernel);
  auto next = gpu_->allocate(16, "more");
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "the GPU is lost: no new worker starts (the CUDA driver finds no GPU)");
  EXPECT_EQ(gpu_->fault(), Fault::kLost);
}

TEST_F(GpuWorker, OthersOnTheGpuAreNamedOnce) {
  setenv("ROOFGEN_FAKE_NVML_SCRIPT", "processes 3", 1);
  start("fault in other");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "2 other processes compute on Fake GPU 0; measured times may vary");
  EXPECT_EQ(gpu_->state()->other_processes, 2);
  EXPECT_FALSE(run(other_));
  EXPECT_TRUE(gpu_->state());
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(GpuWorker, AnotherGpuIsChosenByNumber) {
  ordinal_ = 1;
  start();
  EXPECT_EQ(gpu_->info().device_name, "Fake GPU 1");
  gpu_.reset();
  ordinal_ = 2;
  auto none = make();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, Exit::kUsage);
  EXPECT_EQ(none.error().message, "there is no GPU 2; this machine has 2, counted from 0");
}

TEST_F(GpuWorker, ReportsWhyAWorkerCannotStart) {
  script("old");
  auto old = make();
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().exit, Exit::kUnavailable);
  EXPECT_FALSE(old.error().no_gpu);
  EXPECT_EQ(old.error().message, "the CUDA driver is too old: it supports CUDA 11.4, 12.0 or newer is needed");
  setenv("ROOFGEN_LIBCUDA", "/no/such/libcuda.so", 1);
  const Error none = make().error();
  EXPECT_EQ(none.message.rfind("no CUDA driver: ", 0), 0u);
  EXPECT_TRUE(none.no_gpu);
  executable_ = "/no/such/program";
  EXPECT_EQ(make().error().message, "cannot start a GPU worker: No such file or directory");
  executable_ = "/bin/true";
  EXPECT_EQ(make().error().message, "opening the GPU: the GPU worker ended unexpectedly, with status 0");
  testing::TempDir dir;
  testing::write_text(dir / "babbler", "#!/bin/sh\nhead -c 100 /dev/zero >&0\nsleep 60\n");
  chmod((dir / "babbler").c_str(), 0700);
  executable_ = dir / "babbler";
  EXPECT_EQ(make().error().message, "opening the GPU: the GPU worker sent nonsense");
}

TEST(GpuWire, TensorMapsKeepTheirFormat) {
  for (const DType dtype :
       {DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32, DType::kFp8, DType::kInt8, DType::kInt32}) {
    auto map = std::make_shared<TensorMap>();
    map->dtype = dtype;
    Shot shot;
    shot.steps = {{{1}, fill_launch({256}, 1, 8)}};
    shot.steps[0].launch.args[0].map = map;
    wire::Packer packer;
    wire::pack(packer, std::vector<Shot>{shot});
    const std::string whole = packer.take();
    wire::Unpacker in(whole);
    std::vector<Shot> out;
    wire::unpack(in, out);
    ASSERT_TRUE(in.done());
    EXPECT_EQ(out.at(0).steps.at(0).launch.args.at(0).map->dtype, dtype) << to_string(dtype);
  }
}

TEST(GpuWire, TruncatedMessagesAreRejected) {
  Shot shot;
  auto map = std::make_shared<TensorMap>();
  map->dims = {64, 64};
  map->stride_bytes = {128};
  map->box = {64, 8};
  Launch launch = fill_launch({256}, 1, 8);
  launch.args[0].map = map;
  launch.cluster = {2, 1, 1};
  launch.overlap = true;
  shot.steps = {{{1}, launch}, {{2}, launch}, {{1}, launch}};
  shot.graph = true;
  wire::Packer packer;
  wire::pack(packer, std::vector<Shot>{shot, shot});
  const std::string whole = packer.take();
  for (size_t size = 0; size < whole.size(); ++size) {
    wire::Unpacker in(std::string_view(whole).substr(0, size));
    std::vector<Shot> out;
    wire::unpack(in, out);
    EXPECT_FALSE(in.done()) << size;
  }
  wire::Unpacker in(whole);
  std::vector<Shot> out;
  wire::unpack(in, out);
  ASSERT_TRUE(in.done());
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(out[1].graph);
  ASSERT_EQ(out[1].steps.size(), 3u);
  EXPECT_EQ(out[1].steps[2].module.id, 1u);
  const Launch& back = out[1].steps[1].launch;
  EXPECT_EQ(back.cluster.x, 2u);
  EXPECT_TRUE(back.overlap);
  ASSERT_EQ(back.args.size(), 3u);
  EXPECT_EQ(back.args[0].map->box, map->box);
  EXPECT_EQ(back.args[1].bytes, 4u);
  EXPECT_EQ(back.args[2].bits, 8u);
  // With any single byte changed, the results may differ, but nothing is read past the end.
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string wrong = whole;
    wrong[at] = static_cast<char>(wrong[at] ^ 0xff);
    wire::Unpacker bad(wrong);
    wire::unpack(bad, out);
  }
}

}  // namespace
}  // namespace roofgen::gpu_worker_test
