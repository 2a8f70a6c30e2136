// Reading of CUBINs, broken ones too, and of their instructions by nvdisasm.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "check/check.h"
#include "check/kernel.h"
#include "runtime/compiler.h"
#include "runtime/sass/code.h"
#include "runtime/sass/disassembler.h"
#include "runtime/sass/line_table.h"

namespace roofgen::sass::cubin_test {
namespace {

constexpr const char* kSource =
    "__constant__ float factor[4] = {1, 2, 3, 4};\n"
    "__device__ int total;\n"
    "__global__ void scale(const float* x, float* y, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = factor[i % 4] * x[i];\n"
    "  if (i == 0) total = n;\n"
    "}\n";

/// Of an architecture; empty without NVRTC.
const std::string& cubin(const std::string& arch = "sm_80") {
  static std::map<std::string, std::string> made;
  const auto [at, fresh] = made.try_emplace(arch);
  if (fresh && nvrtc_info().found) {
    check::Request r;
    r.file = "scale.cu";
    r.text = kSource;
    r.arch = arch;
    if (auto chosen = check::choose_kernel(r)) at->second = chosen->compiled.binary.cubin;
  }
  return at->second;
}
constexpr const char* kName = "_Z5scalePKfPfi";

class Cubins : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  }
};

TEST_P(Cubins, HaveCodeParametersAndVariables) {
  const Result<Cubin> c = read_cubin(cubin(GetParam()));
  ASSERT_TRUE(c) << to_string(c.error());
  EXPECT_EQ(fmt::format("sm_{}", c->sm), GetParam());
  ASSERT_EQ(c->kernels.size(), 1u);
  const CubinKernel& k = c->kernels[0];
  EXPECT_EQ(k.name, kName);
  EXPECT_GT(k.code.size(), 0u);
  EXPECT_EQ(k.code.size() % 16, 0u);
  EXPECT_EQ(k.param_bytes, 20u);
  EXPECT_EQ(k.first_param, std::string_view(GetParam()) == "sm_90" ? 0x210u : 0x160u);
  bool has_constant = false, has_variable = false;
  for (const Variable& v : c->variables) {
    if (v.name == "factor") {
      has_constant = true;
      EXPECT_TRUE(v.constant);
      EXPECT_EQ(v.bytes, 16u);
    }
    if (v.name == "total") {
      has_variable = true;
      EXPECT_FALSE(v.constant);
      EXPECT_EQ(v.bytes, 4u);
    }
  }
  EXPECT_TRUE(has_constant);
  EXPECT_TRUE(has_variable);
}

TEST_P(Cubins, EachInstructionHasItsText) {
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto code = read_code({{cubin(GetParam()), kName, GetParam()}, {cubin(GetParam()), "nobody", GetParam()}});
  ASSERT_EQ(code.size(), 2u);
  ASSERT_TRUE(code[0]) << to_string(code[0].error());
  EXPECT_FALSE(code[1]);
  EXPECT_TRUE(code[0]->unknown.empty());
  bool loads = false, exits = false;
  for (const Instruction& i : code[0]->instructions) {
    EXPECT_TRUE(i.known) << i.spelling;
    loads |= i.opcode->action == Action::kLdg;
    exits |= i.opcode->action == Action::kExit;
  }
  EXPECT_TRUE(loads && exits);
  // A second kernel behind the first has the same targets.
  const auto two = read_code({{cubin(GetParam()), kName, GetParam()}, {cubin(GetParam()), kName, GetParam()}});
  ASSERT_TRUE(two[0] && two[1]);
  ASSERT_EQ(two[0]->instructions.size(), two[1]->instructions.size());
  for (size_t i = 0; i < two[0]->instructions.size(); ++i)
    EXPECT_EQ(two[0]->instructions[i].target, two[1]->instructions[i].target) << i;
}

TEST_P(Cubins, EachInstructionHasItsLine) {
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto lines = line_table(cubin(GetParam()), kName);
  ASSERT_TRUE(lines) << to_string(lines.error());
  const auto code = read_code({{cubin(GetParam()), kName, GetParam()}});
  ASSERT_TRUE(code[0]) << to_string(code[0].error());
  ASSERT_EQ(lines->size(), code[0]->instructions.size());
  std::vector<int> stores;
  for (size_t i = 0; i < lines->size(); ++i) {
    EXPECT_EQ((*lines)[i].file, "/scale.cu") << i;
    EXPECT_GE((*lines)[i].line, 3) << i;
    EXPECT_LE((*lines)[i].line, 7) << i;
    if (code[0]->instructions[i].opcode->action == Action::kStg) stores.push_back((*lines)[i].line);
  }
  EXPECT_EQ(stores, (std::vector<int>{5, 6}));
  const auto of_nobody = line_table(cubin(GetParam()), "nobody");
  ASSERT_TRUE(of_nobody);
  EXPECT_TRUE(of_nobody->empty());
}

INSTANTIATE_TEST_SUITE_P(Architectures, Cubins, testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

class BrokenCubins : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  }
};

TEST_F(BrokenCubins, CutShortAreErrorsOrResults) {
  const std::string& whole = cubin();
  for (size_t size = 0; size < whole.size(); size += size < 128 ? 1 : 13) {
    const std::string part = whole.substr(0, size);  // at the end of its memory, for sanitizers
    const Result<Cubin> c = read_cubin(part);
    EXPECT_TRUE(c || c.error().exit == Exit::kFailed) << size;
    const auto lines = line_table(part, kName);
    EXPECT_TRUE(lines || lines.error().exit == Exit::kFailed) << size;
  }
  EXPECT_FALSE(read_cubin(""));
  EXPECT_FALSE(read_cubin("not a CUBIN at all, but long enough for the header of an ELF file of 64 bits........"));
}

TEST_F(BrokenCubins, WithWrongBytesAreErrorsOrResults) {
  std::mt19937 random(1);
  size_t errors = 0;
  for (int n = 0; n < 4000; ++n) {
    std::string bytes = cubin();
    // The headers at both ends decide more than what lies between.
    for (int flips = 1 + static_cast<int>(random() % 4); flips; --flips) {
      const size_t at = random() % 3 == 0   ? random() % 64
                        : random() % 2 == 0 ? bytes.size() - 1 - random() % std::min<size_t>(bytes.size(), 1024)
                                            : random() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    const Result<Cubin> c = read_cubin(bytes);
    errors += !c;
    if (!c) continue;
    const auto lines = line_table(bytes, kName);
    EXPECT_TRUE(lines || lines.error().exit == Exit::kFailed);
    for (const CubinKernel& k : c->kernels) {
      ASSERT_GE(k.code.data(), bytes.data());
      ASSERT_LE(k.code.data() + k.code.size(), bytes.data() + bytes.size());
    }
  }
  EXPECT_GT(errors, 100u);
}

// In a process of its own: the path is looked up once.
TEST(Disassembler, IsNamedWhereItIsMissing) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* before = std::getenv("ROOFGEN_NVDISASM");
  const std::string kept = before ? before : "";
  setenv("ROOFGEN_NVDISASM", "/nonexistent/nvdisasm", 1);
  EXPECT_EXIT(
      {
        const auto code = read_code({{cubin(), kName, "sm_80"}});
        const bool right = !code[0] && code[0].error().exit == Exit::kUnavailable;
        const std::string text = code[0] ? "" : to_string(code[0].error());
        std::fprintf(stderr, "%s: %s\n", right ? "unavailable" : "wrong", text.c_str());
        std::exit(text.find('\n') == std::string::npos ? 0 : 1);
      },
      testing::ExitedWithCode(0), "unavailable: .*nvdisasm was not found");
  if (before)
    setenv("ROOFGEN_NVDISASM", kept.c_str(), 1);
  else
    unsetenv("ROOFGEN_NVDISASM");
}

}  // namespace
}  // namespace roofgen::sass::cubin_test
