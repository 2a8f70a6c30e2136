// The CUDA executor with a fake driver, and without a driver.
#include <gtest/gtest.h>

#include "tests/runtime/fake_driver.h"

namespace roofgen::cuda_test {
namespace {

using testing::fill_launch;

class Cuda : public testing::FakeDriver {
 protected:
  static Binary binary(const std::string& entry, const std::string& ptx = "ptx", const std::string& arch = "sm_90") {
    return testing::fake_binary(entry, ptx, arch);
  }
};

TEST_F(Cuda, DescribesTheGpu) {
  auto gpu = open();
  EXPECT_EQ(gpu->info().name, "cuda");
  EXPECT_EQ(gpu->info().device_name, "Fake GPU 0");
  EXPECT_EQ(gpu->info().arch, "sm_90");
  const DriverFacts driver = gpu->info().driver;
  EXPECT_EQ(driver.cc, 90);
  EXPECT_EQ(driver.sms, 64);
  EXPECT_EQ(driver.bus_bits, 4096);
  EXPECT_EQ(driver.memory_bytes, int64_t{32} << 30);
  EXPECT_EQ(driver.l2_bytes, 1 << 20);
  EXPECT_EQ(driver.regs_per_sm, 0);  // unknown to this driver
  const GpuIdentity identity = gpu->identity();
  EXPECT_EQ(identity.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(identity.pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(identity.cuda_version, 12080);
  EXPECT_EQ(identity.driver, "");  // only NVML would know
  EXPECT_EQ(identity.max_sm_mhz, 1500);
  EXPECT_EQ(identity.l2_bytes, 1u << 20);
  EXPECT_EQ(gpu->origin(), Origin::kMeasured);
}

TEST_F(Cuda, RunsAKernelAndTimesIt) {
  {
    auto gpu = open();
    auto buffer = gpu->allocate(1024, "out");
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer->address % 256, 0u);
    auto module = gpu->load(binary("fill"));
    ASSERT_TRUE(module) << to_string(module.error());
    auto result = gpu->run(*module, fill_launch(*buffer, 7, 1000), {});
    ASSERT_TRUE(result) << to_string(result.error());
    ASSERT_TRUE(result->time_ns);
    EXPECT_NEAR(*result->time_ns, 12'000, 1);  // 4 CTAs of 3 us
    EXPECT_FALSE(result->counts);

    std::vector<std::byte> out(1024);
    std::vector<bool> written;
    ASSERT_TRUE(gpu->read(*buffer, out, &written));
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], i < 1000 ? std::byte{7} : std::byte{0xff});
      EXPECT_EQ(written[i], i < 1000) << i;
    }
    ASSERT_TRUE(gpu->poison(*buffer));
    ASSERT_TRUE(gpu->read({buffer->address + 3}, std::span(out).first(9), &written));
    EXPECT_EQ(written, std::vector<bool>(9, false));
    gpu->unload(*module);
    EXPECT_FALSE(gpu->run(*module, fill_launch(*buffer, 7, 1000), {}));
  }
  EXPECT_EQ(live(), 0) << "something was not given back";
}

TEST_F(Cuda, ResultsWithSomePoisonBytesAreWritten) {
  auto gpu = open();
  auto buffer = gpu->allocate(8, "out");
  // 0x3F80FFFF is an ordinary float, not poison.
  const unsigned char values[8] = {0xff, 0xff, 0x80, 0x3f, 0xff, 0xff, 0xff, 0xff};
  ASSERT_TRUE(gpu->write(*buffer, std::as_bytes(std::span(values))));
  std::vector<std::byte> out(8);
  std::vector<bool> written;
  ASSERT_TRUE(gpu->read(*buffer, out, &written));
  EXPECT_EQ(written, (std::vector<bool>{true, true, true, true, false, false, false, false}));
}

TEST_F(Cuda, PoisonCanBeLeftOut) {
  setenv("ROOFGEN_POISON", "0", 1);
  auto gpu = open();
  unsetenv("ROOFGEN_POISON");
  auto buffer = gpu->allocate(8, "out");
  const unsigned char ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  ASSERT_TRUE(gpu->write(*buffer, std::as_bytes(std::span(ones))));
  std::vector<std::byte> out(8);
  std::vector<bool> written;
  ASSERT_TRUE(gpu->read(*buffer, out, &written));
  EXPECT_EQ(written, std::vector<bool>(8, true)) << "nothing tells these from poison, so nothing counts as poison";
}

TEST_F(Cuda, InputsAreFilledInPartsAndCountAsWritten) {
  auto gpu = open();
  uint64_t bytes = (uint64_t{33} << 20) + 5;
  auto buffer = gpu->allocate(bytes, "in", [](uint64_t offset, std::span<std::byte> part) {
    for (size_t i = 0; i < part.size(); ++i) part[i] = static_cast<std::byte>((offset + i) >> 16);
  });
  ASSERT_TRUE(buffer);
  std::vector<std::byte> out(bytes);
  std::vector<bool> written;
  ASSERT_TRUE(gpu->read(*buffer, out, &written));
  for (size_t i = 0; i < bytes; i += 4093) {
    ASSERT_EQ(out[i], static_cast<std::byte>(i >> 16)) << i;
    ASSERT_TRUE(written[i]) << i;
  }
}

TEST_F(Cuda, AccessOutsideAllocationsIsAnError) {
  auto gpu = open();
  auto buffer = gpu->allocate(16, "small");
  std::vector<std::byte> out(17);
  EXPECT_FALSE(gpu->read(*buffer, out));
  EXPECT_FALSE(gpu->read({buffer->address + 8}, std::span(out).first(9)));
  EXPECT_FALSE(gpu->write({1}, std::span(out).first(1)));
  EXPECT_TRUE(gpu->read({buffer->address + 8}, std::span(out).first(8)));
  gpu->release(*buffer);
  EXPECT_FALSE(gpu->read(*buffer, std::span(out).first(1)));
  EXPECT_FALSE(gpu->poison(*buffer));
}

TEST_F(Cuda, LargeSharedMemoryIsOptedInto) {
  auto gpu = open();
  auto buffer = gpu->allocate(16, "out");
  auto module = gpu->load(binary("fill"));
  EXPECT_TRUE(gpu->run(*module, fill_launch(*buffer, 1, 16, 200'000), {}));
  auto too_much = gpu->run(*module, fill_launch(*buffer, 1, 16, 240'000), {});
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().message, "kernel fill needs 240000 bytes of shared memory; Fake GPU 0 has 232448");
}

TEST_F(Cuda, FallsBackToPtx) {
  script("wants ptx");
  auto gpu = open();
  EXPECT_TRUE(gpu->load(binary("fill")));
  auto no_ptx = gpu->load(binary("fill", ""));
  ASSERT_FALSE(no_ptx);
  std::string text = to_string(no_ptx.error());
  EXPECT_NE(text.find("CUDA_ERROR_NO_BINARY_FOR_GPU, 209"), std::string::npos) << text;
  EXPECT_NE(text.find("compiled for sm_90; Fake GPU 0 is sm_90, its driver supports CUDA 12.8"), std::string::npos);
  auto broken = gpu->load(binary("fill", "broken"));
  ASSERT_FALSE(broken);
  EXPECT_NE(to_string(broken.error()).find("ptxas says no"), std::string::npos);
}

TEST_F(Cuda, MissingEntryIsAnErrorAndLeaksNothing) {
  {
    auto gpu = open();
    auto module = gpu->load(binary("absent"));
    ASSERT_FALSE(module);
    EXPECT_NE(module.error().message.find("finding kernel absent: named symbol not found"), std::string::npos);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(Cuda, ALaterCallReportsTheOriginalFault) {
  auto gpu = open();
  auto buffer = gpu->allocate(16, "out");
  auto module = gpu->load(binary("fault"));
  auto fault = gpu->run(*module, fill_launch(*buffer, 1, 16), {});
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().message,
            "running kernel fault: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  auto after = gpu->allocate(16, "more");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().message, "the GPU context was lost by an earlier fault");
  EXPECT_NE(to_string(after.error()).find("running kernel fault"), std::string::npos);
  EXPECT_EQ(gpu->fault(), Fault::kKernel);
  EXPECT_FALSE(gpu->run(*module, fill_launch(*buffer, 1, 16), {}));
  EXPECT_FALSE(gpu->state());
  EXPECT_EQ(gpu->fault(), Fault::kKernel);
}

TEST_F(Cuda, OutOfMemoryNamesTheBuffer) {
  auto gpu = open();
  auto big = gpu->allocate(uint64_t{2} << 30, "scores");
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().message.find("allocating 2147483648 bytes of GPU memory for scores: out of memory"),
            std::string::npos);
  EXPECT_NE(big.error().message.find("; 1073741824 of 34359738368 bytes are free"), std::string::npos)
      << big.error().message;
  EXPECT_EQ(gpu->fault(), Fault::kMemory);
  EXPECT_TRUE(gpu->allocate(16, "small"));
}

TEST_F(Cuda, StateReportsFreeMemory) {
  auto gpu = open();
  auto state = gpu->state();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->free_bytes, uint64_t{1} << 30);
  EXPECT_EQ(state->other_processes, 0);
}

TEST_F(Cuda, OtherGpusAreOpenedByNumber) {
  auto gpu = open(1);
  EXPECT_EQ(gpu->info().device_name, "Fake GPU 1");
  EXPECT_EQ(gpu->identity().pci_bus_id, "0000:3c:00.0");
}

TEST_F(Cuda, CodeOfAnotherGpuIsNamedInOneLine) {
  script("wants ptx");
  auto gpu = open();
  EXPECT_TRUE(gpu->load(binary("fill", "ptx", "sm_80")));  // its PTX suffices
  EXPECT_EQ(gpu->fault(), Fault::kNone);
  auto wrong = gpu->load(binary("fill", "", "sm_100a"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "loading kernel fill: it is compiled for sm_100a; Fake GPU 0 is sm_90");
  EXPECT_EQ(gpu->fault(), Fault::kRefused);
  auto nothing = binary("fill", "");
  nothing.cubin.clear();
  EXPECT_EQ(gpu->load(nothing).error().message, "loading kernel fill: there is neither a CUBIN nor PTX");
}

TEST_F(Cuda, CodeNewerThanTheDriverIsNamedInOneLine) {
  script("old ELF; old PTX");
  auto gpu = open();
  auto newer = gpu->load(binary("fill"));
  ASSERT_FALSE(newer);
  EXPECT_EQ(
      newer.error().message,
      "loading kernel fill: its PTX is newer than the driver, which supports CUDA 12.8; a newer driver or an older "
      "NVRTC helps");
}

TEST_F(Cuda, ClustersAndOverlapArriveAtTheDriver) {
  auto gpu = open();
  auto buffer = gpu->allocate(16, "out");
  auto module = gpu->load(binary("fill"));
  Launch launch = fill_launch(*buffer, 1, 16);
  launch.cluster = {2, 1, 1};
  launch.overlap = true;  // the first launch has no predecessor to overlap with
  clear_log();
  ASSERT_TRUE(gpu->run(*module, launch, {}));
  EXPECT_NE(log().find("launch fill cluster=2x1x1\n"), std::string::npos) << log();
  launch.grid = {32, 1, 1};
  launch.cluster = {16, 1, 1};  // larger clusters need an opt-in
  EXPECT_TRUE(gpu->run(*module, launch, {}));
  launch.cluster = {3, 1, 1};
  auto odd = gpu->run(*module, launch, {});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().message, "kernel fill: a grid of 32 x 1 x 1 CTAs cannot be cut into clusters of 3 x 1 x 1");
  EXPECT_EQ(gpu->fault(), Fault::kRefused);
  script("sm_80");
  auto ampere = open();
  auto old_module = ampere->load(binary("fill"));
  launch.cluster = {2, 1, 1};
  auto none = ampere->run(*old_module, launch, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "kernel fill: Fake GPU 0 (sm_80) has no clusters; sm_90 and newer have");
}

TEST_F(Cuda, TensorMapsAreEncodedWithTheBuffersAddress) {
  auto gpu = open();
  auto buffer = gpu->allocate(1 << 16, "A");
  auto module = gpu->load(binary("mapped"));
  ASSERT_TRUE(module);
  TensorMap map;
  map.dtype = DType::kBf16;
  map.dims = {128, 256};
  map.stride_bytes = {256};
  map.box = {64, 128};
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  map.nan_fill = true;
  Launch launch;
  launch.block = {32, 1, 1};
  auto with = [&](const TensorMap& m) {
    launch.args = {{"A", true, buffer->address, 8, std::make_shared<const TensorMap>(m)}};
  };
  with(map);
  clear_log();
  ASSERT_TRUE(gpu->run(*module, launch, {}));
  EXPECT_EQ(log().substr(0, log().find('\n')),
            "tensor_map type=9 rank=2 128/64/1 256/128/1 stride=256 interleave=0 swizzle=3 promotion=3 fill=1");
  map.dtype = DType::kFp16;
  map.box = {16, 1};
  map.swizzle_bytes = 32;
  map.l2_promotion_bytes = 0;
  map.nan_fill = false;
  with(map);
  clear_log();
  ASSERT_TRUE(gpu->run(*module, launch, {}));
  EXPECT_NE(log().find("type=6 rank=2 128/16/1 256/1/1 stride=256 interleave=0 swizzle=1 promotion=0 fill=0"),
            std::string::npos);
  auto message = [&](auto&& change) {
    TensorMap wrong = map;
    change(wrong);
    with(wrong);
    auto refused = gpu->run(*module, launch, {});
    return refused ? std::string("accepted") : refused.error().message;
  };
  EXPECT_EQ(message([](TensorMap& m) {
              m.box = {64, 1};
            }),
            "kernel mapped: tensor map A: a box 128 bytes wide does not fit a swizzle of 32");
  EXPECT_EQ(message([](TensorMap& m) {
              m.box = {4, 1};
            }),
            "kernel mapped: tensor map A: a box 8 bytes wide is not a multiple of 16");
  EXPECT_EQ(message([](TensorMap& m) {
              m.box = {16, 257};
            }),
            "kernel mapped: tensor map A: side 1 of the box is 257; 1 to 256 are possible");
  EXPECT_EQ(message([](TensorMap& m) { m.stride_bytes = {24}; }),
            "kernel mapped: tensor map A: a stride of 24 bytes is not a multiple of 16 below 2^40");
  EXPECT_EQ(message([](TensorMap& m) { m.swizzle_bytes = 48; }),
            "kernel mapped: tensor map A: there is no swizzle of 48 bytes; 0, 32, 64 or 128 was expected");
  EXPECT_EQ(message([](TensorMap& m) { m.dims = {}; }),
            "kernel mapped: tensor map A: 0 dimensions; 1 to 5 are possible");
  EXPECT_EQ(message([](TensorMap& m) { m.dims = {128}; }),
            "kernel mapped: tensor map A: 1 dimensions with 2 sides of a box and 1 strides");
}

TEST_F(Cuda, ReportsWhyTheDriverIsUnusable) {
  struct Case {
    const char* script;
    const char* message;
    bool no_gpu = false;
  };
  for (const Case& each :
       {Case{"no device", "the CUDA driver finds no GPU", true}, Case{"none", "the CUDA driver finds no GPU", true},
        Case{"old", "the CUDA driver is too old: it supports CUDA 11.4, 12.0 or newer is needed"},
        Case{"stub", "is the stub that a CUDA toolkit links against, not a driver"},
        Case{"mismatch", "are of different versions"}, Case{"init fails", "starting the CUDA driver: unknown error"}}) {
    Error error = open_error(each.script);
    EXPECT_EQ(error.exit, Exit::kUnavailable) << each.script;
    EXPECT_EQ(error.no_gpu, each.no_gpu) << each.script;
    EXPECT_NE(error.message.find(each.message), std::string::npos) << error.message;
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(Cuda, ContextThatCannotBeMadeIsAFailure) {
  EXPECT_NE(open_error("context fails").message.find("creating a context: out of memory"), std::string::npos);
  EXPECT_EQ(live(), 0);
}

TEST_F(Cuda, GpuThatIsNotThereIsAUsageError) {
  auto made = cuda::make_executor(ROOFGEN_FAKE_CUDA, 2);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit, Exit::kUsage);
  EXPECT_EQ(made.error().message, "there is no GPU 2; this machine has 2, counted from 0");
}

TEST(CudaDriver, MissingLibraryIsUnavailable) {
  auto made = cuda::make_executor("/no/such/libcuda.so.1", 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit, Exit::kUnavailable);
  EXPECT_EQ(made.error().message.rfind("no CUDA driver: ", 0), 0u) << made.error().message;
}

TEST(CudaDriver, LibraryOfSomethingElseIsUnavailable) {
  auto made = cuda::make_executor("libm.so.6", 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "libm.so.6 is no CUDA driver: it has no cuInit");
}

TEST(CudaDriver, LibraryIsTakenFromTheEnvironment) {
  setenv("ROOFGEN_LIBCUDA", ROOFGEN_FAKE_CUDA, 1);
  auto made = make_cuda_executor();
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ((*made)->info().device_name, "Fake GPU 0");
}

}  // namespace
}  // namespace roofgen::cuda_test
