// The CUDA executor against a driver made for the purpose, and without any driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/cuda/driver.h"
#include "tests/runtime/process.h"

namespace roofgen {
namespace {

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ROOFGEN_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    script("");
  }
  void script(const char* what) {
    reinterpret_cast<void (*)(const char*)>(dlsym(library_, "fake_cuda_script"))(what);
  }
  int live() { return reinterpret_cast<int (*)()>(dlsym(library_, "fake_cuda_live"))(); }

  std::unique_ptr<GpuExecutor> open() {
    auto made = cuda::make_executor(ROOFGEN_FAKE_CUDA, 0);
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }
  Error open_error(const char* what) {
    script(what);
    auto made = cuda::make_executor(ROOFGEN_FAKE_CUDA, 0);
    EXPECT_FALSE(made);
    return made ? Error{} : made.error();
  }

  static Binary binary(const std::string& entry, const std::string& ptx = "ptx") {
    Binary out;
    out.arch = "sm_90";
    out.entry = entry;
    out.cubin =
        "\x7f"
        "ELF cubin";
    out.ptx = ptx;
    return out;
  }
  static Launch fill_launch(DevicePtr to, int32_t value, uint64_t bytes, uint32_t smem = 0) {
    Launch launch;
    launch.grid = {4, 1, 1};
    launch.block = {32, 1, 1};
    launch.smem_bytes = smem;
    launch.args = {{"to", true, to.address, 8},
                   {"value", false, static_cast<uint32_t>(value), 4},
                   {"bytes", false, bytes, 8}};
    return launch;
  }

  void* library_ = nullptr;
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
  EXPECT_EQ(driver.l2_bytes, 0);  // this driver does not say
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
  // 0x3F80FFFF is a float like any other.
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
  EXPECT_EQ(too_much.error().message,
            "kernel fill needs 240000 bytes of shared memory; Fake GPU 0 has 232448");
}

TEST_F(Cuda, FallsBackToPtx) {
  script("wants ptx");
  auto gpu = open();
  EXPECT_TRUE(gpu->load(binary("fill")));
  auto no_ptx = gpu->load(binary("fill", ""));
  ASSERT_FALSE(no_ptx);
  std::string text = to_string(no_ptx.error());
  EXPECT_NE(text.find("CUDA_ERROR_NO_BINARY_FOR_GPU, 209"), std::string::npos) << text;
  EXPECT_NE(text.find("compiled for sm_90; Fake GPU 0 is sm_90, its driver supports CUDA 12.8"),
            std::string::npos);
  auto broken = gpu->load(binary("fill", "broken"));
  ASSERT_FALSE(broken);
  EXPECT_NE(to_string(broken.error()).find("ptxas says no"), std::string::npos);
}

TEST_F(Cuda, MissingEntryIsAnErrorAndLeaksNothing) {
  {
    auto gpu = open();
    auto module = gpu->load(binary("absent"));
    ASSERT_FALSE(module);
    EXPECT_NE(module.error().message.find("finding kernel absent: named symbol not found"),
              std::string::npos);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(Cuda, FaultIsNamedAndEverythingAfterItSaysSo) {
  auto gpu = open();
  auto buffer = gpu->allocate(16, "out");
  auto module = gpu->load(binary("fault"));
  auto fault = gpu->run(*module, fill_launch(*buffer, 1, 16), {});
  ASSERT_FALSE(fault);
  EXPECT_EQ(
      fault.error().message,
      "running kernel fault: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  auto after = gpu->allocate(16, "more");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().message, "the GPU context was lost by an earlier fault");
  EXPECT_NE(to_string(after.error()).find("running kernel fault"), std::string::npos);
}

TEST_F(Cuda, OutOfMemoryNamesTheBuffer) {
  auto gpu = open();
  auto big = gpu->allocate(uint64_t{2} << 30, "scores");
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().message.find("allocating 2147483648 bytes of GPU memory for scores: out of memory"),
            std::string::npos);
}

TEST_F(Cuda, SaysPlainlyWhatIsMissing) {
  struct Case {
    const char* script;
    const char* message;
  };
  for (const Case& each :
       {Case{"no device", "the CUDA driver finds no GPU"}, Case{"none", "the CUDA driver finds no GPU"},
        Case{"old", "the CUDA driver is too old: it supports CUDA 11.4, 12.0 or newer is needed"},
        Case{"stub", "is the stub that a CUDA toolkit links against, not a driver"},
        Case{"mismatch", "are of different versions"},
        Case{"init fails", "starting the CUDA driver: unknown error"}}) {
    Error error = open_error(each.script);
    EXPECT_EQ(error.exit, Exit::kUnavailable) << each.script;
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
}  // namespace roofgen
