// Linking a single PTX, and rejected uses of the linker.
#include "tests/shim/calls.h"

namespace roofgen::test::link_test {
namespace {

constexpr int kCubin = 0, kPtx = 1, kFatBinary = 2, kLibrary = 4;

class Links : public Calls {
 protected:
  Handle linker(unsigned count = 0, int* options = nullptr, void** values = nullptr) {
    Handle out = nullptr;
    EXPECT_EQ(cu("cuLinkCreate_v2", count, options, values, &out), 0);
    return out;
  }
  int add(Handle state, const std::string& data, int type = kPtx) {
    return cu("cuLinkAddData_v2", state, type, static_cast<void*>(const_cast<char*>(data.data())), data.size(), "a.ptx",
              0u, static_cast<int*>(nullptr), static_cast<void**>(nullptr));
  }
};

TEST_F(Links, OnePtxGivesAnImageThatLoads) {
  const Handle state = linker();
  ASSERT_EQ(add(state, kStepPtx), 0);
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(cu("cuLinkComplete", state, &image, &bytes), 0);
  EXPECT_NE(home_.read("log").find("cuLinkComplete: the image is the PTX itself"), std::string::npos);
  // Like most programs, the test loads a copy: the image is freed with its linker.
  const std::string copy(static_cast<const char*>(image), bytes);
  EXPECT_EQ(add(state, kStepPtx), 1) << "after it is complete";
  ASSERT_EQ(cu("cuLinkDestroy", state), 0);
  EXPECT_EQ(cu("cuLinkDestroy", state), 400);
  Handle module = nullptr, step = nullptr;
  ASSERT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>(copy.data())), 0);
  ASSERT_EQ(cu("cuModuleGetFunction", &step, module, "step"), 0);
  Address y = allocate(64);
  ASSERT_EQ(cu("cuMemsetD32_v2", y, 5u, size_t{16}), 0);
  unsigned n = 16, two = 2, three = 3;
  KernelNodeParams p = step_params(y, n, two, three);
  ASSERT_EQ(cu("cuLaunchKernel", step, 1u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)), 0);
  EXPECT_EQ(read(y, 16), std::vector<unsigned>(16, 13));
}

TEST_F(Links, AFileIsReadToo) {
  home_.write("a.ptx", kStepPtx);
  const std::string path = (home_.dir() / "a.ptx").string();
  const auto add_file = [&](Handle state, const std::string& name) {
    return cu("cuLinkAddFile_v2", state, kPtx, name.c_str(), 0u, static_cast<int*>(nullptr),
              static_cast<void**>(nullptr));
  };
  const Handle state = linker();
  EXPECT_EQ(add_file(state, path + ".not"), 301);
  EXPECT_EQ(add_file(state, path), 0);
  void* image = nullptr;
  EXPECT_EQ(cu("cuLinkComplete", state, &image, static_cast<size_t*>(nullptr)), 0);
  Handle module = nullptr;
  EXPECT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>(image)), 0);
}

TEST_F(Links, RefusesUnsupportedInputs) {
  const Handle state = linker();
  void* image = nullptr;
  EXPECT_EQ(cu("cuLinkComplete", state, &image, static_cast<size_t*>(nullptr)), 1) << "nothing to link";
  EXPECT_EQ(add(state, "\177ELF of some kind", kCubin), 209);
  EXPECT_EQ(add(state, "!<arch>", kLibrary), 801);
  EXPECT_EQ(add(state, "!<arch>\ncuda_device_runtime.o/", kLibrary), 0) << "libcudadevrt.a";
  EXPECT_EQ(add(state, "no fat binary at all", kFatBinary), 200);
  EXPECT_EQ(add(state, "x", 6), 1);
  EXPECT_EQ(add(state, kStepPtx), 0);
  EXPECT_EQ(add(state, kStepPtx), 801);
  EXPECT_NE(home_.read("log").find(
                "cuLinkAddData_v2: CUDA_ERROR_NOT_SUPPORTED (801): a.ptx: several PTX modules are not linked into one"),
            std::string::npos);
  EXPECT_EQ(add(step_, kStepPtx), 400) << "no linker";
}

TEST_F(Links, BadPtxIsExplainedInTheCallersLog) {
  char log[200] = "";
  int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER and its size
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const Handle state = linker(2, options, values);
  options[0] = options[1] = 0;  // options are read once; the caller owns the memory behind their values
  std::string wrong = kStepPtx;
  wrong.replace(wrong.find("@%p1 bra"), 8, "@%p1 ((");
  EXPECT_EQ(add(state, wrong), 218);
  EXPECT_NE(std::string(log).find("module.ptx:18"), std::string::npos) << log;
}

}  // namespace
}  // namespace roofgen::test::link_test
