// Calls every entry point of the simulated driver with zeros only: none crashes, no missing one succeeds, and none has
// an effect before cuInit or without a context. Names, versions and errors are compared with CUDA's headers if a
// toolkit is installed; signatures.h compares types.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"
#include "tests/support/words.h"

namespace roofgen::test::entries_test {
namespace {

struct Entry {
  std::string symbol, name;
  int since;
  bool there;
};
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
#define ENTRY(symbol, name, since) {#symbol, #name, since, true},
#define ABSENT(symbol, name, since) {#symbol, #name, since, false},
#define ENTRY_PTSZ(symbol, name, since) {#symbol, #name, since, true}, {#symbol "_ptsz", #name, since, true},
#define ENTRY_PTDS(symbol, name, since) {#symbol, #name, since, true}, {#symbol "_ptds", #name, since, true},
#define ABSENT_PTSZ(symbol, name, since) {#symbol, #name, since, false}, {#symbol "_ptsz", #name, since, false},
#define ABSENT_PTDS(symbol, name, since) {#symbol, #name, since, false}, {#symbol "_ptds", #name, since, false},
#include "runtime/shim/entries.def"
  };
  return all;
}

const std::set<std::string> kNeedNoDriver = {
    "cuInit", "cuGetErrorName", "cuGetErrorString", "cuDriverGetVersion", "cuGetProcAddress", "cuGetExportTable"};
// Entry points for which zeros are meaningful arguments: device 0, no context, the default stream, nothing to free or
// to copy.
const std::set<std::string> kNeedNoContext = {"cuCtxSetCurrent", "cuCtxPopCurrent", "cuDevicePrimaryCtxReset",
                                              "cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxRelease"};
const auto kFineWithZeros = test::words(
    "cuCtxGetStreamPriorityRange cuCtxSynchronize cuStreamQuery cuStreamSynchronize cuMemFree cuMemcpyAtoA "
    "cuMemcpyAtoD cuMemcpyAtoH cuMemcpyAtoHAsync cuMemcpyDtoA cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyDtoD "
    "cuMemcpyDtoDAsync cuMemcpyDtoH cuMemcpyDtoHAsync cuMemcpyHtoD cuMemcpyHtoDAsync cuMemsetD8 cuMemsetD8Async "
    "cuMemsetD16 cuMemsetD16Async cuMemsetD32 cuMemsetD32Async cuMemsetD2D8 cuMemsetD2D8Async cuMemsetD2D16 "
    "cuMemsetD2D16Async cuMemsetD2D32 cuMemsetD2D32Async cuMemcpy cuMemcpyAsync cuCtxSetFlags "
    "cuCtxSetSharedMemConfig cuProfilerStart cuProfilerStop cuCtxSetCacheConfig cuCtxSetLimit");

constexpr int kNotInitialised = 3, kInvalidContext = 201, kNotSupported = 801;

class Entries : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    library_ = dlopen(ROOFGEN_SHIM_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
  }
  static void* at(const std::string& symbol) { return dlsym(library_, symbol.c_str()); }
  template <class F>
  static F* as(const std::string& symbol) {
    void* found = at(symbol);
    F* out = nullptr;
    std::memcpy(&out, &found, sizeof found);
    return out;
  }
  /// Passes more arguments than any entry point takes.
  static int call(const std::string& symbol) {
    auto* f = as<int(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*)>(
        symbol);
    return f(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
             nullptr, nullptr);
  }
  static void* library_;
};
void* Entries::library_ = nullptr;

TEST_F(Entries, AllAreExported) {
  for (const Entry& e : entries()) EXPECT_TRUE(at(e.symbol)) << e.symbol;
}

TEST_F(Entries, MissingEntriesFailAndAreLogged) {
  const Home home;
  const std::string log = (home.dir() / "log").string();
  setenv("ROOFGEN_SIM_LOG", log.c_str(), 1);
  int absent = 0;
  for (const Entry& e : entries()) {
    if (e.there) continue;
    ++absent;
    EXPECT_EQ(call(e.symbol), kNotSupported) << e.symbol;
  }
  unsetenv("ROOFGEN_SIM_LOG");
  EXPECT_GT(absent, 0);
  const std::string text = home.read("log");
  for (const Entry& e : entries()) {
    if (!e.there) {
      EXPECT_NE(text.find(" " + e.symbol + ": CUDA_ERROR_NOT_SUPPORTED (801)"), std::string::npos) << e.symbol;
    }
  }
}

/// ctest runs each test in a separate process, because the driver cannot return to its initial state.
TEST_F(Entries, NothingWorksBeforeInitOrWithoutAContext) {
  for (const Entry& e : entries()) {
    if (!e.there || kNeedNoDriver.count(e.name)) continue;
    EXPECT_EQ(call(e.symbol), kNotInitialised) << e.symbol;
  }
  ASSERT_EQ(as<int(unsigned)>("cuInit")(0), 0);
  int with_context = 0;
  for (const Entry& e : entries()) {
    if (!e.there || kNeedNoDriver.count(e.name)) continue;
    // 0 for cuCtxSetCurrent(null) and for calls that need no context and accept zeros. Never a crash.
    const int status = call(e.symbol);
    with_context += status == kInvalidContext;
    if (status == 0) {
      EXPECT_TRUE(kNeedNoContext.count(e.name)) << e.symbol;
    }
  }
  EXPECT_GT(with_context, 60);

  void* context = nullptr;
  ASSERT_EQ(as<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
  for (const Entry& e : entries()) {
    if (!e.there || kNeedNoDriver.count(e.name)) continue;
    ASSERT_EQ(as<int(void*)>("cuCtxSetCurrent")(context), 0);
    const int status = call(e.symbol);
    if (status == 0) {
      EXPECT_TRUE(kFineWithZeros.count(e.name) || kNeedNoContext.count(e.name))
          << e.symbol << " takes zeros for an answer";
    }
    if (e.name == "cuDevicePrimaryCtxRelease") {
      ASSERT_EQ(as<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
    }
  }
  EXPECT_EQ(as<int(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
}

TEST_F(Entries, ANameMeansTheNewestFormThatTheVersionKnows) {
  auto* look_up = as<int(const char*, void**, int, unsigned long long, int*)>("cuGetProcAddress_v2");
  void* found = nullptr;
  int how = -1;
  const auto is = [&](const char* name, int version, const char* symbol) {
    EXPECT_EQ(look_up(name, &found, version, 0, &how), 0);
    EXPECT_EQ(how, 0);
    EXPECT_EQ(found, at(symbol)) << name << " " << version;
  };
  is("cuMemAlloc", 3020, "cuMemAlloc_v2");
  is("cuMemAlloc", 2000, "cuMemAlloc");  // 32-bit addresses: not supported
  is("cuCtxCreate", 12040, "cuCtxCreate_v3");
  is("cuCtxCreate", 13000, "cuCtxCreate_v4");
  is("cuGetProcAddress", 11030, "cuGetProcAddress");
  is("cuGetProcAddress", 13000, "cuGetProcAddress_v2");
  is("cuGraphInstantiate", 13000, "cuGraphInstantiateWithFlags");
  EXPECT_EQ(look_up("cuLaunchKernelEx", &found, 11000, 0, &how), 0);
  EXPECT_EQ(how, 2);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(look_up("cuLaunch", &found, 13000, 0, &how), 0);
  EXPECT_EQ(look_up("cuNothing", &found, 13000, 0, &how), 0);
  EXPECT_EQ(how, 1);
  EXPECT_EQ(look_up("cuInit", &found, 13010, 0, &how), 1) << "newer than the driver";
  EXPECT_EQ(as<int(const char*, void**, int, unsigned long long)>("cuGetProcAddress")("cuNothing", &found, 13000, 0),
            500);
}

#ifdef ROOFGEN_CUDA_INCLUDE
std::string header(const std::string& name) {
  std::ifstream in(ROOFGEN_CUDA_INCLUDE "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(Entries, MatchTheHeader) {
  const std::string text = header("cuda.h");
  if (text.find("#define CUDA_VERSION 13000") == std::string::npos) GTEST_SKIP() << "the table is of CUDA 13.0";
  std::set<std::string> known, missing;
  for (const Entry& e : entries()) known.insert(e.symbol);
  int declared = 0;
  for (const test::Match& m : test::matches(text, R"(CUresult\s+CUDAAPI\s+(cu\w+)\s*\()")) {
    ++declared;
    if (!known.count(m[1])) missing.insert(m[1]);
  }
  // The name after the header's renaming, including the suffix for per-thread streams.
  for (const test::Match& m :
       test::matches(text, R"(#define\s+cu\w+\s+(?:__CUDA_API_(PTSZ|PTDS)\()?(cu[A-Z]\w+)\)?[ \t]*\n)")) {
    const std::string suffix = m[1] == "PTSZ" ? "_ptsz" : m[1] == "PTDS" ? "_ptds" : "";
    if (!known.count(m[2] + suffix)) missing.insert(m[2] + suffix);
  }
  EXPECT_GT(declared, 400);
  EXPECT_TRUE(missing.empty()) << *missing.begin() << " and " << missing.size() - 1 << " more";
}

TEST_F(Entries, VersionsMatchTheTypedefs) {
  const std::string text = header("cudaTypedefs.h");
  if (header("cuda.h").find("#define CUDA_VERSION 13000") == std::string::npos)
    GTEST_SKIP() << "the table is of CUDA 13.0";
  std::map<std::string, std::set<int>> theirs, ours;
  for (const test::Match& m : test::matches(text, R"(CUDAAPI \*PFN_(cu\w+)_v(\d+)\))"))
    theirs[m[1]].insert(std::stoi(m[2]));
  for (const Entry& e : entries()) ours[e.name].insert(e.since);
  ours["cuGraphInstantiate"].erase(12000);  // a macro of cuda.h
  EXPECT_GT(theirs.size(), 400u);
  for (const auto& [name, versions] : theirs) EXPECT_EQ(ours[name], versions) << name;
}

TEST_F(Entries, EveryErrorHasItsNameAndWords) {
  auto* name_of = as<int(int, const char**)>("cuGetErrorName");
  auto* text_of = as<int(int, const char**)>("cuGetErrorString");
  const std::string text = header("cuda.h");
  const std::string list = text.substr(text.find("typedef enum cudaError_enum"),
                                       text.find("} CUresult;") - text.find("typedef enum cudaError_enum"));
  int errors = 0;
  for (const test::Match& m : test::matches(list, R"(\n\s*(CUDA_\w+)\s*=\s*(\d+))")) {
    const char *name = nullptr, *words = nullptr;
    EXPECT_EQ(name_of(std::stoi(m[2]), &name), 0) << m[1];
    EXPECT_EQ(text_of(std::stoi(m[2]), &words), 0) << m[1];
    EXPECT_EQ(m[1], name ? name : "");
    ++errors;
  }
  EXPECT_GT(errors, 90);
  const char* none = "";
  EXPECT_EQ(name_of(12345, &none), 1);
  EXPECT_EQ(none, nullptr);
}
#endif

}  // namespace
}  // namespace roofgen::test::entries_test
