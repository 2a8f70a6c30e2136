// Fixtures: the loaded simulated driver, with a context and a kernel y[i] = a * y[i] + b, for i < n.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/shim/layouts.h"
#include "tests/cli/program.h"

namespace roofgen::test {

using namespace roofgen::shim;

inline const char* const kStepPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry step(.param .u64 p_y, .param .u32 p_n, .param .u32 p_a, .param .u32 p_b)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p_y];
  ld.param.u32 %r1, [p_n];
  ld.param.u32 %r2, [p_a];
  ld.param.u32 %r3, [p_b];
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ntid.x;
  mad.lo.s32 %r7, %r5, %r6, %r4;
  setp.ge.u32 %p1, %r7, %r1;
  @%p1 bra $done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r7, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r8, [%rd4];
  mad.lo.s32 %r9, %r8, %r2, %r3;
  st.global.u32 [%rd4], %r9;
$done:
  ret;
}
)";

/// The library, loaded.
class Loaded : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ROOFGEN_SHIM_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
  }
  /// Calls an entry point with arguments of exactly its types.
  template <class... Args>
  int cu(const char* symbol, Args... args) {
    void* at = dlsym(library_, symbol);
    int (*f)(Args...) = nullptr;
    std::memcpy(&f, &at, sizeof f);
    return f ? f(args...) : -1;
  }

  /// An argument that the call only reads; a list of handles that is empty.
  template <class T>
  static const T* ref(const T& x) {
    return &x;
  }
  static constexpr const Handle* kNone = nullptr;

  void* library_ = nullptr;
};

class Calls : public Loaded {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Loaded::SetUp());
    setenv("ROOFGEN_SIM_LOG", (home_.dir() / "log").c_str(), 1);
    ASSERT_EQ(cu("cuInit", 0u), 0);
    ASSERT_EQ(cu("cuDevicePrimaryCtxRetain", &context_, 0), 0);
    ASSERT_EQ(cu("cuCtxSetCurrent", context_), 0);
    ASSERT_EQ(cu("cuModuleLoadData", &module_, static_cast<const void*>(kStepPtx)), 0);
    ASSERT_EQ(cu("cuModuleGetFunction", &step_, module_, "step"), 0);
  }
  void TearDown() override {
    EXPECT_EQ(cu("cuDevicePrimaryCtxRelease_v2", 0), 0);
    unsetenv("ROOFGEN_SIM_LOG");
  }
  Address allocate(size_t bytes) {
    Address at = 0;
    EXPECT_EQ(cu("cuMemAlloc_v2", &at, bytes), 0);
    return at;
  }
  std::vector<unsigned> read(Address at, size_t n) {
    std::vector<unsigned> out(n);
    EXPECT_EQ(cu("cuMemcpyDtoH_v2", static_cast<void*>(out.data()), at, n * 4), 0);
    return out;
  }
  KernelNodeParams step_params(Address& y, unsigned& n, unsigned& a, unsigned& b) {
    args_ = {&y, &n, &a, &b};
    return {step_, 1, 1, 1, 32, 1, 1, 0, args_.data(), nullptr, nullptr, nullptr};
  }

  Home home_;
  Handle context_ = nullptr, module_ = nullptr, step_ = nullptr;
  std::vector<void*> args_;
};

}  // namespace roofgen::test
