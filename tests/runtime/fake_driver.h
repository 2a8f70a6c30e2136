// A test fixture with the fake driver (fake_cuda.c) in this process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/cuda/driver.h"

namespace roofgen::testing {

inline Binary fake_binary(const std::string& entry, const std::string& ptx = "ptx", const std::string& arch = "sm_90") {
  Binary out;
  out.arch = arch;
  out.entry = entry;
  out.cubin =
      "\x7f"
      "ELF cubin";
  out.ptx = ptx;
  return out;
}

/// 4 CTAs of 3 us each in the fake driver's time.
inline Launch fill_launch(DevicePtr to, int32_t value, uint64_t bytes, uint32_t smem = 0) {
  Launch launch;
  launch.grid = {4, 1, 1};
  launch.block = {32, 1, 1};
  launch.smem_bytes = smem;
  launch.args = {
      {"to", true, to.address, 8}, {"value", false, static_cast<uint32_t>(value), 4}, {"bytes", false, bytes, 8}};
  return launch;
}

class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ROOFGEN_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    setenv("ROOFGEN_LIBNVML", "/no/such/nvml", 1);
    script("");
  }
  void script(const char* what) { reinterpret_cast<void (*)(const char*)>(dlsym(library_, "fake_cuda_script"))(what); }
  int live() { return reinterpret_cast<int (*)()>(dlsym(library_, "fake_cuda_live"))(); }
  std::string log() { return reinterpret_cast<const char* (*)()>(dlsym(library_, "fake_cuda_log"))(); }
  void clear_log() { reinterpret_cast<void (*)()>(dlsym(library_, "fake_cuda_clear_log"))(); }

  std::unique_ptr<GpuExecutor> open(int ordinal = 0) {
    auto made = cuda::make_executor(ROOFGEN_FAKE_CUDA, ordinal);
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }
  Error open_error(const char* what) {
    script(what);
    auto made = cuda::make_executor(ROOFGEN_FAKE_CUDA, 0);
    EXPECT_FALSE(made);
    return made ? Error{} : made.error();
  }

  void* library_ = nullptr;
};

}  // namespace roofgen::testing
