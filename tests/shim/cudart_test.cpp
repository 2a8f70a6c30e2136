// The runtime on the simulated driver without nvcc: a kernel and a variable are registered as nvcc's host code does.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/cli/program.h"
#include "tests/shim/calls.h"
#include "tests/shim/fatbin.h"
#include "tests/support/patterns.h"

namespace roofgen::test::cudart_test {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2, kInvalidDirection = 21, kInvalidFunction = 98, kInvalidSymbol = 13;

struct Symbols {
  std::string name, suffix;
  bool there;
};
const std::vector<Symbols>& symbols() {
  static const std::vector<Symbols> all = {
#define ENTRY(symbol) {#symbol, "", true},
#define ENTRY_PTSZ(symbol) {#symbol, "_ptsz", true},
#define ENTRY_PTDS(symbol) {#symbol, "_ptds", true},
#define ABSENT(symbol) {#symbol, "", false},
#define ABSENT_PTSZ(symbol) {#symbol, "_ptsz", false},
#define ABSENT_PTDS(symbol) {#symbol, "_ptds", false},
#include "runtime/shim/cudart/entries.def"
  };
  return all;
}

struct Extent {
  unsigned x, y, z;
};

class Cudart : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("ROOFGEN_SIM_LOG", (home_.dir() / "log").c_str(), 1);
    library_ = dlopen((std::string(ROOFGEN_SHIM_DIR "/libcudart.so.") + GetParam()).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
  }
  void TearDown() override { unsetenv("ROOFGEN_SIM_LOG"); }
  template <class F>
  F* as(const char* symbol) {
    void* at = dlvsym(library_, symbol, (std::string("libcudart.so.") + GetParam()).c_str());
    EXPECT_TRUE(at) << symbol;
    F* out = nullptr;
    std::memcpy(&out, &at, sizeof out);
    return out;
  }
  template <class... Args>
  int call(const char* symbol, Args... args) {
    return as<int(Args...)>(symbol)(args...);
  }
  std::string text_of(int error) { return as<const char*(int)>("cudaGetErrorName")(error); }
  /// Registers kStepPtx with a variable, and the kernel under the address of `step_`.
  void register_step() {
    std::string ptx = kStepPtx;
    ptx.insert(ptx.find(".visible"), ".visible .global .align 4 .u32 table[4];\n");
    ptx.insert(ptx.find("  ld.param"), "  .reg .b64 %rt; mov.u64 %rt, table;\n");
    image_ = container(entry(kPtx, 80, kPlain, ptx, 0));
    wrapper_.data = image_.data();
    handle_ = as<void**(void*)>("__cudaRegisterFatBinary")(&wrapper_);
    as<void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*)>("__cudaRegisterFunction")(
        handle_, &step_, nullptr, "step", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    as<void(void**, char*, char*, const char*, int, size_t, int, int)>("__cudaRegisterVar")(
        handle_, &table_, nullptr, "table", 0, size_t{16}, 0, 0);
    as<void(void**)>("__cudaRegisterFatBinaryEnd")(handle_);
  }
  int launch(void* y, unsigned n, unsigned threads, const void* kernel = nullptr) {
    unsigned two = 2, three = 3;
    void* args[] = {&y, &n, &two, &three};
    return as<int(const void*, Extent, Extent, void**, size_t, void*)>("cudaLaunchKernel")(
        kernel ? kernel : &step_, {1, 1, 1}, {threads, 1, 1}, args, 0, nullptr);
  }

  Home home_;
  void* library_ = nullptr;
  void** handle_ = nullptr;
  std::string image_;
  FatbinWrapper wrapper_;
  char step_ = 0, table_ = 0;
};

TEST_P(Cudart, RunsARegisteredKernel) {
  register_step();
  void* y = nullptr;
  std::vector<unsigned> values(16, 5);
  ASSERT_EQ(call("cudaMalloc", &y, size_t{64}), 0) << home_.read("log");
  ASSERT_EQ(call("cudaMemcpy", y, static_cast<const void*>(values.data()), size_t{64}, kHostToDevice), 0);
  ASSERT_EQ(launch(y, 16, 32), 0) << home_.read("log");
  ASSERT_EQ(call("cudaDeviceSynchronize"), 0);
  ASSERT_EQ(
      call("cudaMemcpy", static_cast<void*>(values.data()), static_cast<const void*>(y), size_t{64}, kDeviceToHost), 0);
  EXPECT_EQ(values, std::vector<unsigned>(16, 13));

  const unsigned in[] = {1, 2, 3, 4};
  unsigned out[2] = {};
  ASSERT_EQ(call("cudaMemcpyToSymbol", static_cast<const void*>(&table_), static_cast<const void*>(in), size_t{16},
                 size_t{0}, kHostToDevice),
            0);
  ASSERT_EQ(call("cudaMemcpyFromSymbol", static_cast<void*>(out), static_cast<const void*>(&table_), size_t{8},
                 size_t{8}, kDeviceToHost),
            0);
  EXPECT_EQ(out[0], 3u);
  EXPECT_EQ(out[1], 4u);
  EXPECT_EQ(call("cudaMemcpyFromSymbol", static_cast<void*>(out), static_cast<const void*>(&table_), size_t{8},
                 size_t{12}, kDeviceToHost),
            1);
  // After a reset the modules are loaded again.
  ASSERT_EQ(call("cudaDeviceReset"), 0);
  ASSERT_EQ(call("cudaMalloc", &y, size_t{64}), 0);
  ASSERT_EQ(call("cudaMemset", y, 0, size_t{64}), 0);
  EXPECT_EQ(launch(y, 16, 32), 0);
  EXPECT_EQ(call("cudaDeviceSynchronize"), 0);
  as<void(void**)>("__cudaUnregisterFatBinary")(handle_);
  EXPECT_EQ(launch(y, 16, 32), kInvalidFunction);
}

TEST_P(Cudart, ErrorsStayUntilTheyAreRead) {
  register_step();
  void* y = nullptr;
  ASSERT_EQ(call("cudaMalloc", &y, size_t{64}), 0);
  EXPECT_EQ(call("cudaGetLastError"), 0);
  EXPECT_EQ(launch(y, 16, 2048), 9);
  EXPECT_EQ(call("cudaDeviceSynchronize"), 0);
  EXPECT_EQ(call("cudaPeekAtLastError"), 9);
  EXPECT_EQ(call("cudaGetLastError"), 9);
  EXPECT_EQ(call("cudaGetLastError"), 0);
  EXPECT_EQ(text_of(9), "cudaErrorInvalidConfiguration");
  EXPECT_EQ(launch(y, 16, 32, &table_), kInvalidFunction);
  size_t bytes = 0;
  EXPECT_EQ(call("cudaGetSymbolSize", &bytes, static_cast<const void*>(&step_)), kInvalidSymbol);
  EXPECT_EQ(call("cudaMemcpy", y, static_cast<const void*>(&bytes), size_t{8}, 5), kInvalidDirection);
  EXPECT_EQ(call("cudaMemcpy", static_cast<void*>(&bytes), static_cast<const void*>(&bytes), size_t{8}, kHostToDevice),
            1)
      << "the destination is no device memory";
  EXPECT_EQ(call("cudaSetDevice", 1), 101);
  const std::string log = home_.read("log");
  EXPECT_NE(log.find("cudaLaunchKernel: cudaErrorInvalidConfiguration (9): a block of 2048 x 1 x 1 threads"),
            std::string::npos)
      << log;
  // A finding of the kernel is the error of the next call, and stays.
  ASSERT_EQ(launch(static_cast<char*>(y) + 4, 16, 32), 0);
  EXPECT_EQ(call("cudaDeviceSynchronize"), 700);
  EXPECT_EQ(call("cudaFree", y), 700);
}

TEST_P(Cudart, UnsupportedCallsNameThemselves) {
  int absent = 0;
  for (const Symbols& s : symbols()) {
    for (const std::string& symbol : {s.name, s.name + s.suffix}) {
      if (s.there) {
        EXPECT_TRUE(dlsym(library_, symbol.c_str())) << symbol;
        continue;
      }
      ++absent;
      EXPECT_EQ(call(symbol.c_str()), 801) << symbol;
      EXPECT_EQ(call("cudaGetLastError"), 801) << symbol;
      EXPECT_NE(home_.read("log").find(" " + symbol + ": cudaErrorNotSupported (801)"), std::string::npos) << symbol;
    }
  }
  EXPECT_GT(absent, 100);
}

TEST_P(Cudart, VersionsDiffer) {
  int version = 0;
  ASSERT_EQ(call("cudaRuntimeGetVersion", &version), 0);
  EXPECT_EQ(version, std::stoi(GetParam()) * 1000);
  char properties[2048] = {};
  EXPECT_EQ(call("cudaGetDeviceProperties_v2", static_cast<void*>(properties), 0), 0);
  EXPECT_TRUE(std::string(properties).starts_with("NVIDIA H200"));
  EXPECT_EQ(call("cudaGetDeviceProperties", static_cast<void*>(properties), 0), version < 13000 ? 801 : 0)
      << "in CUDA 12 the struct of CUDA 11";
}

#ifdef ROOFGEN_CUDA_INCLUDE
std::string header(const std::string& name) {
  std::ifstream in(ROOFGEN_CUDA_INCLUDE "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_P(Cudart, HasAllCallsAndErrorsOfTheHeaders) {
  const std::string calls = header("cuda_runtime_api.h"), types = header("driver_types.h");
  if (calls.find("#define CUDART_VERSION  13000") == std::string::npos) GTEST_SKIP() << "the table is of CUDA 13.0";
  std::set<std::string> known;
  for (const Symbols& s : symbols()) known.insert({s.name, s.name + s.suffix});
  int declared = 0;
  for (const test::Match& m : test::matches(calls, R"(\n\s*extern [^\n;(]*CUDARTAPI\s+(cuda\w+)\()")) {
    ++declared;
    EXPECT_TRUE(known.count(m[1])) << m[1];
  }
  EXPECT_GT(declared, 250);
  const size_t begin = types.find("enum __device_builtin__ cudaError\n");
  const std::string errors = types.substr(begin, types.find("};", begin) - begin);
  int count = 0;
  for (const test::Match& m : test::matches(errors, R"(\n\s*(cuda\w+)\s*=\s*(\d+))")) {
    ++count;
    const int error = std::stoi(m[2]);
    EXPECT_EQ(text_of(error), m[1]);
    EXPECT_STRNE(as<const char*(int)>("cudaGetErrorString")(error), "unrecognized error code") << error;
  }
  EXPECT_GT(count, 120);
}
#endif

INSTANTIATE_TEST_SUITE_P(Versions, Cudart, testing::Values("12", "13"),
                         [](const auto& of) { return std::string("cuda") + of.param; });

}  // namespace
}  // namespace roofgen::test::cudart_test
