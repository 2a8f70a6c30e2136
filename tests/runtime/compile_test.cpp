// The production compiler against real NVRTC.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <map>
#include <set>

#include "runtime/compiler.h"
#include "tests/runtime/kernels.h"
#include "tests/runtime/process.h"

namespace roofgen::compile_test {
namespace {

using testing::compile_workers_of;
using testing::endless_program;
using testing::eventually;
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

  std::unique_ptr<Compiler> compiler() {
    auto made = make_nvrtc_compiler(options, "", nullptr);
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }

  /// Outcomes by index, each index exactly once.
  std::vector<CompileOutcome> compile(Compiler& with, const std::vector<Program>& programs) {
    std::map<size_t, CompileOutcome> by_index;
    with.compile_all(pointers(programs), [&](CompileOutcome outcome) {
      size_t index = outcome.index;
      EXPECT_TRUE(by_index.emplace(index, std::move(outcome)).second) << "twice: " << index;
      return true;
    });
    std::vector<CompileOutcome> out;
    for (auto& [index, outcome] : by_index) out.push_back(std::move(outcome));
    EXPECT_EQ(out.size(), programs.size());
    return out;
  }

  Error error_of(const Program& bad) {
    auto with = compiler();
    auto outcomes = compile(*with, {bad});
    EXPECT_FALSE(outcomes[0].binary);
    return outcomes[0].binary ? Error{} : outcomes[0].binary.error();
  }

  CompileOptions options;
};

TEST_F(Compile, GivesPtxCubinAndRegisters) {
  auto with = compiler();
  auto outcomes = compile(*with, {scale_program(1)});
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  const Binary& binary = *outcomes[0].binary;
  EXPECT_NE(binary.ptx.find(".entry kern"), std::string::npos);
  EXPECT_EQ(binary.cubin.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_GT(binary.registers, 0);
  EXPECT_EQ(binary.spill_bytes, 0);
  EXPECT_EQ(binary.stack_bytes, 0);
  EXPECT_EQ(binary.arch, "sm_90");
  EXPECT_EQ(binary.entry, "kern");
  EXPECT_EQ(binary.digest, with->digest(scale_program(1)));
  EXPECT_EQ(binary.log.find("Compile time"), std::string::npos);
  EXPECT_FALSE(outcomes[0].cached);
}

TEST_F(Compile, ReportsSpillsStackAndSharedMemory) {
  auto with = compiler();
  auto outcomes = compile(*with, {program("extern \"C\" __global__ void __launch_bounds__(1024, 2) kern(float* x) {\n"
                                          "  __shared__ float s[64];\n"
                                          "  float a[64];\n"
                                          "#pragma unroll\n"
                                          "  for (int i = 0; i < 64; ++i) a[i] = x[i * 32];\n"
                                          "  s[threadIdx.x % 64] = a[threadIdx.x % 64];\n"
                                          "  __syncthreads();\n"
                                          "#pragma unroll\n"
                                          "  for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i * 7 + 3) % 64] + s[i];\n"
                                          "#pragma unroll\n"
                                          "  for (int i = 0; i < 64; ++i) x[i * 64] = a[i] * a[63 - i];\n"
                                          "}\n")});
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  const Binary& binary = *outcomes[0].binary;
  EXPECT_EQ(binary.registers, 32);
  EXPECT_GT(binary.spill_bytes, 0);
  EXPECT_GE(binary.stack_bytes, 64 * 4);
  EXPECT_EQ(binary.static_smem_bytes, 64 * 4);
  ASSERT_FALSE(binary.advisories.empty());
  EXPECT_NE(binary.advisories[0].find("spilled"), std::string::npos);
}

TEST_F(Compile, WarningsAreNotErrors) {
  auto with = compiler();
  auto outcomes = compile(*with, {program("extern \"C\" __global__ void kern(float* x) { int unused = 3; }\n")});
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  EXPECT_NE(outcomes[0].binary->log.find("warning"), std::string::npos);
}

TEST_F(Compile, FileNamesInLineTablesHoldNoDirectory) {
  auto with = compiler();
  auto outcomes = compile(*with, {scale_program(1)});
  ASSERT_TRUE(outcomes[0].binary);
  EXPECT_NE(outcomes[0].binary->ptx.find("\"/kernel.cu\""), std::string::npos);
  EXPECT_EQ(outcomes[0].binary->cubin.find(std::filesystem::current_path().string()), std::string::npos);
}

TEST_F(Compile, SourceErrorNamesTheTemplateLine) {
  Error error =
      error_of(program("extern \"C\" __global__ void kern(float* x) {\n"
                       "  x[0] = no_such_thing + 1;\n"
                       "  int y = \"abc\";\n"
                       "}\n"));
  EXPECT_EQ(error.exit, Exit::kFailed);
  EXPECT_EQ(error.where.file, "demo.cu.jinja");
  EXPECT_EQ(error.where.line, 102);
  EXPECT_EQ(error.message, "identifier \"no_such_thing\" is undefined");
  std::string text = to_string(error);
  EXPECT_NE(text.find("kernel.cu:2"), std::string::npos) << text;
  EXPECT_NE(text.find("x[0] = no_such_thing + 1;\n           ^"), std::string::npos) << text;
  EXPECT_NE(text.find("demo.cu.jinja:103: error: "), std::string::npos) << text;
}

TEST_F(Compile, PtxasErrorNamesTheTemplateLine) {
  Error error =
      error_of(program("extern \"C\" __global__ void kern(float* x) {\n"
                       "  x[1] = 3.0f;\n"
                       "  asm volatile(\"bogus.instr %0;\" :: \"f\"(x[0]));\n"
                       "}\n"));
  EXPECT_EQ(error.where.file, "demo.cu.jinja");
  EXPECT_EQ(error.where.line, 103);
  EXPECT_NE(error.message.find("ptxas: "), std::string::npos) << error.message;
}

TEST_F(Compile, TooMuchStaticSharedMemoryIsReportedWithItsSize) {
  Error error =
      error_of(program("extern \"C\" __global__ void kern(float* x) {\n"
                       "  __shared__ float s[100000];\n"
                       "  s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[5];\n"
                       "}\n"));
  EXPECT_EQ(error.message, "static shared memory: 400000 > 49152 bytes; beyond that it must be dynamic");
}

TEST_F(Compile, MissingEntryIsAnError) {
  Program other = scale_program(1);
  other.entry = "not_there";
  EXPECT_EQ(error_of(other).message, "the source has no kernel named not_there");
}

TEST_F(Compile, MissingHeaderIsAnErrorAtItsLine) {
  Error error = error_of(program("\n#include <no_such_header.h>\nextern \"C\" __global__ void kern(float* x) {}\n"));
  EXPECT_EQ(error.where.line, 102);
  EXPECT_NE(error.message.find("no_such_header.h"), std::string::npos);
}

TEST_F(Compile, CudaHeadersAreFoundAndLeaveNoPath) {
  if (nvrtc_info().include_dir.empty()) GTEST_SKIP() << "no CUDA headers";
  auto with = compiler();
  auto outcomes = compile(*with, {program("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
                                          "extern \"C\" __global__ void kern(__half* x, __nv_bfloat16* y) {\n"
                                          "  x[0] = __hadd(x[1], __float2half(__bfloat162float(y[0])));\n}\n")});
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  EXPECT_EQ(outcomes[0].binary->ptx.find(nvrtc_info().include_dir), std::string::npos);
}

TEST_F(Compile, EveryProgramIsAnsweredOnceAndEqualOnesCompileOnce) {
  std::vector<Program> programs;
  for (int i = 0; i < 12; ++i) programs.push_back(scale_program(i % 5));
  auto with = compiler();
  auto outcomes = compile(*with, programs);
  int compiled = 0;
  for (const CompileOutcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.binary) << to_string(outcome.binary.error());
    EXPECT_EQ(outcome.binary->digest, with->digest(programs[outcome.index]));
    compiled += !outcome.cached;
  }
  EXPECT_EQ(compiled, 5);
}

TEST_F(Compile, TimeOutIsAnErrorOfThatCandidateOnly) {
  options.timeout = std::chrono::milliseconds(1500);
  options.jobs = 1;
  auto with = compiler();
  auto outcomes = compile(*with, {scale_program(1), endless_program(), scale_program(2)});
  EXPECT_TRUE(outcomes[0].binary);
  ASSERT_FALSE(outcomes[1].binary);
  EXPECT_EQ(outcomes[1].binary.error().message, "compiling took longer than 1.5 s of CPU time");
  EXPECT_TRUE(outcomes[2].binary) << to_string(outcomes[2].binary.error());
}

TEST_F(Compile, WorkerThatHangsIsGivenUp) {
  testing::TempDir dir;
  testing::write_text(dir / "worker", "#!/bin/sh\nexec sleep 600\n");
  std::filesystem::permissions(dir / "worker", std::filesystem::perms::owner_all);
  options.worker_executable = dir / "worker";
  options.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(error_of(scale_program(1)).message, "compiling took longer than 0.5 s by the clock");
}

TEST_F(Compile, MemoryCapIsAnErrorOfThatCandidateOnly) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator reserves its address space ahead, so no cap can bind";
#endif
  options.memory_limit_bytes = uint64_t{256} << 20;
  options.jobs = 1;
  auto with = compiler();
  auto outcomes = compile(*with, {endless_program(), scale_program(2)});
  ASSERT_FALSE(outcomes[0].binary);
  EXPECT_NE(outcomes[0].binary.error().message.find("256 MiB"), std::string::npos)
      << to_string(outcomes[0].binary.error());
  EXPECT_TRUE(outcomes[1].binary) << to_string(outcomes[1].binary.error());
}

TEST_F(Compile, CrashIsAnErrorOfThatCandidateOnly) {
  options.jobs = 1;
  auto with = compiler();
  std::thread killer([] {
    eventually([] { return !compile_workers_of(getpid()).empty(); });
    for (pid_t worker : compile_workers_of(getpid())) kill(worker, SIGKILL);
  });
  auto outcomes = compile(*with, {endless_program(), scale_program(1), scale_program(2)});
  killer.join();
  ASSERT_FALSE(outcomes[0].binary);
  EXPECT_EQ(outcomes[0].binary.error().message, "the compiler process crashed: Killed");
  EXPECT_TRUE(outcomes[1].binary);
  EXPECT_TRUE(outcomes[2].binary);
}

TEST_F(Compile, WorkersAreReusedAndReplacedWhenTheyDiedIdle) {
  auto with = compiler();
  compile(*with, {scale_program(1), scale_program(2)});
  std::vector<pid_t> first = compile_workers_of(getpid());
  EXPECT_EQ(first.size(), 2u);
  compile(*with, {scale_program(3), scale_program(4)});
  EXPECT_EQ(compile_workers_of(getpid()), first);
  for (pid_t worker : first) kill(worker, SIGKILL);
  // A process that can be waited for has no threads left and has closed its socket.
  for (pid_t worker : first) {
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT), 0);
  }
  for (const CompileOutcome& outcome : compile(*with, {scale_program(5), scale_program(6)}))
    EXPECT_TRUE(outcome.binary) << to_string(outcome.binary.error());
}

TEST_F(Compile, StoppingEarlyAbandonsTheRestAndKillsBusyWorkers) {
  options.jobs = 2;
  auto with = compiler();
  std::vector<Program> programs{endless_program(), scale_program(1), scale_program(2)};
  int calls = 0;
  with->compile_all(pointers(programs), [&](CompileOutcome) { return ++calls < 1; });
  EXPECT_EQ(calls, 1);
  EXPECT_LE(compile_workers_of(getpid()).size(), 1u);
  EXPECT_TRUE(compile(*with, {scale_program(3)})[0].binary);
}

TEST_F(Compile, WorkersEndWhenTheirParentIsKilled) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  pid_t parent = fork();
  if (parent == 0) {
    auto with = compiler();
    Program endless = endless_program();
    with->compile_all({&endless}, [](CompileOutcome) { return true; });
    _exit(0);
  }
  ASSERT_TRUE(eventually([&] { return !compile_workers_of(parent).empty(); }));
  std::vector<pid_t> workers = compile_workers_of(parent);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (pid_t worker : workers)
    EXPECT_TRUE(eventually([&] { return waitpid(worker, nullptr, WNOHANG) == worker; })) << worker;
}

TEST_F(Compile, ArchWithoutSupportIsUnavailable) {
  options.arch = "sm_70";
  auto made = make_nvrtc_compiler(options, "", nullptr);
  if (nvrtc_info().major < 13) GTEST_SKIP() << "this NVRTC still targets sm_70";
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit, Exit::kUnavailable);
  EXPECT_NE(made.error().message.find("sm_70"), std::string::npos);
  EXPECT_NE(made.error().message.find("analysis only"), std::string::npos);
}

TEST_F(Compile, ArchSpecificTargetsAreAccepted) {
  options.arch = "sm_90a";
  auto with = compiler();
  auto outcomes = compile(*with, {scale_program(1)});
  ASSERT_TRUE(outcomes[0].binary) << to_string(outcomes[0].binary.error());
  EXPECT_NE(outcomes[0].binary->ptx.find(".target sm_90a"), std::string::npos);
}

TEST_F(Compile, DigestCoversSourceEntryArchAndFlagsButNotSchedule) {
  auto with = compiler();
  Program base = scale_program(1);
  Program renamed = base, moved = base;
  renamed.entry = "other";
  moved.schedule.variant = "elsewhere";
  moved.line_map = {};
  std::set<std::string> digests{with->digest(base), with->digest(scale_program(2)), with->digest(renamed)};
  EXPECT_EQ(digests.size(), 3u);
  EXPECT_EQ(with->digest(base), with->digest(moved));
  EXPECT_EQ(with->digest(base).size(), 64u);
  options.arch = "sm_80";
  EXPECT_FALSE(digests.count(compiler()->digest(base)));
  options.arch = "sm_90";
  options.extra_flags = {"--use_fast_math"};
  EXPECT_FALSE(digests.count(compiler()->digest(base)));
}

TEST_F(Compile, UnknownFlagFailsWithNvrtcsWords) {
  options.extra_flags = {"--frobnicate"};
  Error error = error_of(scale_program(1));
  EXPECT_NE(error.message.find("--frobnicate"), std::string::npos) << to_string(error);
}

TEST_F(Compile, WorkerThatCannotStartIsAnError) {
  options.worker_executable = "/no/such/program";
  EXPECT_NE(error_of(scale_program(1)).message.find("cannot start a compiler process"), std::string::npos);
}

TEST_F(Compile, WorkerThatIsNotAWorkerIsAnError) {
  options.worker_executable = "/bin/true";
  EXPECT_NE(error_of(scale_program(1)).message.find("ended unexpectedly"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::compile_test
