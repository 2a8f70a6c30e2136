// The timing of queued calls on a fake driver (tests/runtime/fake_cuda.c).
#include "bench/peers/stream_timer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace roofgen::peers::stream_timer_test {
namespace {

class StreamTimer : public testing::Test {
 protected:
  void open(const char* script) {
    setenv("ROOFGEN_LIBCUDA", ROOFGEN_FAKE_CUDA, 1);
    setenv("ROOFGEN_LIBNVML", "/no/such/nvml", 1);
    library_ = dlopen(ROOFGEN_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    call<void>("fake_cuda_script", script);
    auto gpu = Gpu::open(0);
    ASSERT_TRUE(gpu) << to_string(gpu.error());
    gpu_ = std::move(*gpu);
  }
  template <class R, class... A>
  R call(const char* name, A... arguments) {
    return reinterpret_cast<R (*)(A...)>(dlsym(library_, name))(arguments...);
  }
  /// What the driver was asked for by one sample.
  std::string sample(bool cold) {
    call<void>("fake_cuda_clear_log");
    auto ns = gpu_->time([] { return Result<void>(); }, cold);
    EXPECT_TRUE(ns) << to_string(ns.error());
    return call<const char*>("fake_cuda_log");
  }
  static size_t gates(const std::string& log) {
    size_t out = 0;
    for (size_t at = 0; (at = log.find("roofgen_gate", at)) != std::string::npos; ++at) ++out;
    return out;
  }

  void* library_ = nullptr;
  std::unique_ptr<Gpu> gpu_;
};

TEST_F(StreamTimer, AColdSampleFindsNoChangedLinesInL2) {
  open("");
  EXPECT_EQ(sample(true).rfind(
                "launch roofgen_sweep write\nlaunch roofgen_sweep read\nlaunch roofgen_gate\nrecord\nrecord\n", 0),
            0u)
      << sample(true);
  EXPECT_EQ(sample(false).rfind("launch roofgen_gate\nrecord\nrecord\n", 0), 0u) << sample(false);
}

TEST_F(StreamTimer, ALateHostIsGivenAnotherTry) {
  open("late host 3");
  EXPECT_EQ(gates(sample(true)), 4u);
  EXPECT_EQ(gates(sample(true)), 1u);
}

}  // namespace
}  // namespace roofgen::peers::stream_timer_test
