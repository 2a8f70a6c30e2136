// Reads program logs, including those of NVRTC releases and situations that this machine cannot produce.
#include "runtime/compile/log.h"

#include <gtest/gtest.h>

#include "runtime/compiler.h"
#include "tests/runtime/kernels.h"

namespace roofgen::log_test {
namespace {

constexpr const char* kTwoKernels =
    "ptxas warning : Registers are spilled to local memory in function 'kern', 132 bytes spill stores, 136 "
    "bytes "
    "spill loads\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_90'\n"
    "ptxas info    : Function properties for other\n"
    "ptxas         .     64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 31 registers, used 0 barriers, 64 bytes cumulative stack size\n"
    "ptxas info    : Compile time = 7.402 ms\n"
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
    "requirements.\n"
    "ptxas info    : Compiling entry function 'kern' for 'sm_90'\n"
    "ptxas info    : Function properties for kern\n"
    "ptxas         .     320 bytes stack frame, 132 bytes spill stores, 136 bytes spill loads\n"
    "ptxas info    : Used 64 registers, used 1 barriers, 320 bytes cumulative stack size, 256 bytes smem\n"
    "ptxas info    : Compile time = 25.397 ms\n";

TEST(PtxasLog, TakesTheNumbersOfTheNamedKernel) {
  PtxasReport report = parse_ptxas_log(kTwoKernels, "kern");
  EXPECT_TRUE(report.found);
  EXPECT_EQ(report.registers, 64);
  EXPECT_EQ(report.spill_bytes, 132 + 136);
  EXPECT_EQ(report.stack_bytes, 320);
  EXPECT_EQ(report.static_smem_bytes, 256);
  PtxasReport other = parse_ptxas_log(kTwoKernels, "other");
  EXPECT_EQ(other.registers, 31);
  EXPECT_EQ(other.spill_bytes, 0);
  EXPECT_EQ(other.static_smem_bytes, 0);
  EXPECT_FALSE(parse_ptxas_log(kTwoKernels, "kernel").found);
}

TEST(PtxasLog, KeepsAdvisoriesVerbatim) {
  PtxasReport report = parse_ptxas_log(kTwoKernels, "kern");
  ASSERT_EQ(report.advisories.size(), 2u);
  EXPECT_NE(report.advisories[0].find("spilled to local memory"), std::string::npos);
  EXPECT_NE(report.advisories[1].find("(C7508)"), std::string::npos);
}

TEST(PtxasLog, KnowsTheAdvisoriesThatUndoWarpgroupCode) {
  Binary binary;
  binary.advisories = {"ptxas warning : Registers are spilled to local memory in function 'kern'",
                       "ptxas info    : (C7600) Something else"};
  EXPECT_FALSE(undone_by_ptxas(binary));
  for (const char* code : {"(C7508)", "(C7510)", "(C7511)", "(C7514)", "(C7515)", "(C7517)"}) {
    binary.advisories.push_back(std::string("ptxas info    : ") + code + " Potential Performance Loss: ...");
    EXPECT_EQ(undone_by_ptxas(binary), binary.advisories.back());
    binary.advisories.pop_back();
  }
}

TEST(PtxasLog, CountsFunctionsThatWereNotInlined) {
  PtxasReport report = parse_ptxas_log(
      "ptxas info    : Compiling entry function 'kern' for 'sm_80'\n"
      "ptxas info    : Function properties for kern\n"
      "    8 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Function properties for helper\n"
      "    16 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, 400 bytes cmem[0]\n",
      "kern");
  EXPECT_EQ(report.registers, 24);
  EXPECT_EQ(report.spill_bytes, 16);
  EXPECT_EQ(report.stack_bytes, 24);
}

TEST(PtxasLog, StableLogDropsOnlyTimes) {
  std::string stable = stable_log(kTwoKernels);
  EXPECT_EQ(stable.find("Compile time"), std::string::npos);
  EXPECT_NE(stable.find("Used 31 registers"), std::string::npos);
  EXPECT_EQ(stable_log(stable), stable);
}

Error error_of(std::string log, const Program& program, std::string ptx = "") {
  CompileReply reply;
  reply.status = kNvrtcCompilationError;
  reply.status_name = "NVRTC_ERROR_COMPILATION";
  reply.log = std::move(log);
  reply.ptx = std::move(ptx);
  return compile_error(reply, program);
}

const Program kProgram = testing::program("a\nb\nc\n");

TEST(CompileError, MapsTheLineAndKeepsTheCaret) {
  Error error = error_of(
      "kernel.cu(1): warning #177-D: variable \"dead\" was declared but never referenced\n  a\n  ^\n\n"
      "kernel.cu(2): error: expected a \";\"\n  b\n   ^\n\n1 error detected in the compilation of "
      "\"kernel.cu\".\n",
      kProgram);
  EXPECT_EQ(to_string(error),
            "demo.cu.jinja:102: error: expected a \";\"\nin the generated source, kernel.cu:2:\n  b\n   ^");
}

TEST(CompileError, LineOutsideTheMapStaysInTheGeneratedSource) {
  Error error = error_of("kernel.cu(9): error: expected a declaration\n", kProgram);
  EXPECT_EQ(error.where.file, "kernel.cu");
  EXPECT_EQ(error.where.line, 9);
}

TEST(CompileError, LineDirectivesAreBelieved) {
  Error error =
      error_of("templates/attention/fused.cu.jinja(41): error #20: identifier \"x\" is undefined\n", kProgram);
  EXPECT_EQ(error.where.file, "templates/attention/fused.cu.jinja");
  EXPECT_EQ(error.where.line, 41);
  EXPECT_EQ(error.message, "identifier \"x\" is undefined");
}

TEST(CompileError, PtxLineGoesBackThroughLoc) {
  std::string ptx =
      ".visible .entry kern()\n{\n\t.loc\t1 1 0\n\tmov.u32 %r1, 0;\n\t.loc\t1 3 7, function_name L, "
      "inlined_at 1 1 0\n\tbogus;\n}\n";
  Error error = error_of(
      "ptxas application ptx input, line 6; error   : Not a name of any known instruction: 'bogus'\n", kProgram, ptx);
  EXPECT_EQ(error.where.line, 103);
  EXPECT_EQ(error.message, "ptxas: Not a name of any known instruction: 'bogus'");
}

TEST(CompileError, ManyErrorsAreCounted) {
  std::string log;
  for (int i = 0; i < 9; ++i) log += "kernel.cu(1): error: number " + std::to_string(i) + "\n";
  Error error = error_of(log, kProgram);
  EXPECT_EQ(error.message, "number 0");
  EXPECT_EQ(error.notes.back(), "and 4 more errors");
}

TEST(CompileError, WithoutDiagnosticTheFirstTellingLineIsShown) {
  EXPECT_EQ(error_of("nvrtc: error: failed to open libnvrtc-builtins.so.13.5.\n", kProgram).message,
            "NVRTC failed: NVRTC_ERROR_COMPILATION: nvrtc: error: failed to open libnvrtc-builtins.so.13.5.");
  EXPECT_EQ(error_of("", kProgram).message, "NVRTC failed: NVRTC_ERROR_COMPILATION, without a reason");
}

TEST(CompileError, MangledLogsDoNotCrash) {
  for (std::string log : {"kernel.cu(): error: x", "(1): error: x", "kernel.cu(99999999999999999999): error: x",
                          "kernel.cu(1): error", "ptxas error", "ptxas application ptx input, line ; error   : x",
                          "kernel.cu(-1): error: x", "\n\n\n", "'", "ptxas info : Compiling entry function 'kern"}) {
    Error error = error_of(log, kProgram);
    EXPECT_FALSE(error.message.empty()) << log;
    parse_ptxas_log(log, "kern");
  }
}

}  // namespace
}  // namespace roofgen::log_test
