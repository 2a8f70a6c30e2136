// The production compiler against real NVRTC.
#include <gtest/gtest.h>

#include "runtime/compiler.h"
#include "tests/runtime/kernels.h"

namespace roofgen {
namespace {

using testing::program;
using testing::scale_program;

std::vector<const Program*> pointers(const std::vector<Program>& programs) {
  std::vector<const Program*> out;
  for (const Program& each : programs) out.push_back(&each);
  return out;
}

class Compile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found";
    options.jobs = 2;
  }

  std::unique_ptr<Compiler> compiler(const std::string& cache_dir = "") {
    auto made = make_nvrtc_compiler(options, cache_dir, [this](const std::string& line) { warnings.push_back(line); });
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }

  /// Outcomes by index.
  std::vector<CompileOutcome> compile(Compiler& with, const std::vector<Program>& programs) {
    std::map<size_t, CompileOutcome> by_index;
    with.compile_all(pointers(programs), [&](CompileOutcome outcome) {
      size_t index = outcome.index;
      EXPECT_TRUE(by_index.emplace(index, std::move(outcome)).second) << "twice: " << index;
      return true;
    });
    std::vector<CompileOutcome> out;
    for (auto& [index, outcome] : by_index) out.push_back(std::move(outcome));
    return out;
  }

  CompileOptions options;
  std::vector<std::string> warnings;
};

TEST_F(Compile, GivesPtxCubinAndRegisters) {
  auto with = compiler();
  auto outcomes = compile(*with, {scale_program(1)});
  ASSERT_EQ(outcomes.size(), 1u);
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  const Binary& binary = *outcomes[0].binary;
  EXPECT_NE(binary.ptx.find(".entry kern"), std::string::npos);
  EXPECT_EQ(binary.cubin.substr(0, 4), "\x7f" "ELF");
  EXPECT_GT(binary.registers, 0);
  EXPECT_EQ(binary.spill_bytes, 0);
  EXPECT_EQ(binary.arch, "sm_90");
  EXPECT_EQ(binary.digest, with->digest(scale_program(1)));
  EXPECT_FALSE(outcomes[0].cached);
}

}  // namespace
}  // namespace roofgen
