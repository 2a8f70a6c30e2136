// Fat binaries: the PTX that suits the device is found, compressed or not; damaged ones are refused.
#include "tests/shim/fatbin.h"

#include "tests/shim/calls.h"

namespace roofgen::test::fatbin_test {
namespace {

std::string for_target(const std::string& target) {
  std::string ptx = kStepPtx;
  return ptx.replace(ptx.find("sm_80"), 5, target);
}

/// LZ4: all but the last lines as literals, then a match of 300 bytes of spaces, then the rest.
std::string lz4(std::string& text) {
  const size_t last = text.size() - text.rfind("$done:");
  text.insert(text.size() - last, std::string(301, ' '));
  const size_t literals = text.size() - last - 300;
  const auto length = [](size_t n) {
    std::string out;
    for (n -= 15; n >= 255; n -= 255) out += '\377';
    return out + static_cast<char>(n);
  };
  return "\377" + length(literals) + text.substr(0, literals) + raw<uint16_t>(1) + length(300 - 4) + "\xf0" +
         length(last) + text.substr(text.size() - last);
}
/// Zstandard: one block that is not compressed.
std::string zstd(const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  return "\x28\xb5\x2f\xfd\xa0" + raw(size) + raw(size << 3 | 1).substr(0, 3) + text;
}

class FatBinaries : public Calls {
 protected:
  int load(const std::string& image, const char* call = "cuModuleLoadData") {
    return cu(call, &module_, static_cast<const void*>(image.data()));
  }
  /// Loads the image and runs its kernel: y = 2 * 5 + 3.
  void expect_runs(const std::string& image, const char* call = "cuModuleLoadData") {
    ASSERT_EQ(load(image, call), 0) << home_.read("log");
    ASSERT_EQ(cu("cuModuleGetFunction", &step_, module_, "step"), 0);
    Address y = allocate(64);
    ASSERT_EQ(cu("cuMemsetD32_v2", y, 5u, size_t{16}), 0);
    unsigned n = 16, two = 2, three = 3;
    KernelNodeParams p = step_params(y, n, two, three);
    ASSERT_EQ(cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)),
              0);
    EXPECT_EQ(read(y, 16), std::vector<unsigned>(16, 13));
  }
};

TEST_F(FatBinaries, PtxIsFoundInAllForms) {
  std::string text = for_target("sm_80");
  const std::string packed = lz4(text);
  expect_runs(container(entry(kPtx, 80, kLz4, packed, text.size())));
  expect_runs(container(entry(kPtx, 80, kZstd, zstd(text), text.size())));
  const std::string plain = container(entry(kPtx, 80, kPlain, text, 0));
  expect_runs(plain);
  expect_runs(plain, "cuModuleLoadFatBinary");
  FatbinWrapper wrapper;
  wrapper.data = plain.data();
  expect_runs(raw(wrapper), "cuModuleLoadFatBinary");
}

TEST_F(FatBinaries, TheNewestTargetThatRunsOnTheDeviceIsTaken) {
  const std::string newer = for_target("sm_100"), good = for_target("sm_90"), other = for_target("sm_80a");
  const std::string machine = entry(kMachineCode, 90, kPlain, "\177ELF", 0);
  expect_runs(container(machine + entry(kPtx, 80, kPlain, "broken", 0) + entry(kPtx, 90, kPlain, good, 0) +
                        entry(kPtx, 80, kPlain, other, 0) + entry(kPtx, 100, kPlain, newer, 0)));
  EXPECT_EQ(load(container(machine + entry(kPtx, 100, kPlain, newer, 0))), 209);
  EXPECT_NE(home_.read("log").find(
                "a fat binary without PTX for sm_90 (it has machine code for sm_90, PTX for sm_100); nvcc embeds PTX"),
            std::string::npos)
      << home_.read("log");
  EXPECT_EQ(load(container(entry(kPtx, 80, kPlain, other, 0))), 209);
  EXPECT_EQ(load(container("")), 209);
  FatbinWrapper relocatable;
  relocatable.version = 2;
  EXPECT_EQ(load(raw(relocatable)), 209);
  EXPECT_NE(home_.read("log").find("relocatable device code (nvcc -rdc=true) is not supported"), std::string::npos);
}

TEST_F(FatBinaries, DamagedOnesAreRefused) {
  std::string text = for_target("sm_80");
  const std::string packed = lz4(text);
  for (size_t cut = 1; cut < packed.size(); cut += 7)
    EXPECT_EQ(load(container(entry(kPtx, 80, kLz4, packed.substr(0, cut), text.size()))), 209) << cut;
  EXPECT_EQ(load(container(entry(kPtx, 80, kLz4, packed, text.size() - 1))), 209);
  EXPECT_EQ(load(container(entry(kPtx, 80, kZstd, "x" + zstd(text), text.size()))), 209);
  std::string whole = container(entry(kPtx, 80, kPlain, text, 0));
  whole[8] = static_cast<char>(whole[8] - 1);  // the container ends inside the entry
  EXPECT_EQ(load(whole), 209);
  EXPECT_NE(home_.read("log").find("the fat binary is damaged"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::test::fatbin_test
