// Programs of the runtime API, compiled by nvcc with -cudart shared (runtime_program.cu), under roofgen run.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::runtime_test {
namespace {

#ifdef ROOFGEN_RUNTIME_PROGRAM
class RuntimeProgram : public testing::Test {
 protected:
  Outcome run(const std::string& mode, const std::string& flags = "") {
    return home_.run("run " + flags + " -- '" ROOFGEN_RUNTIME_PROGRAM "' " + mode);
  }
  static void expect_in(const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
  Home home_;
};

TEST_F(RuntimeProgram, RunsAsOnAGpu) {
  for (const char* device : {"h200-sxm", "a100-sxm-80", "b200", "rtx-5090"}) {
    const Outcome o = run("all", std::string("--device ") + device);
    EXPECT_EQ(o.exit, 0) << o.out << o.err;
    EXPECT_EQ(o.out.find("FAILED"), std::string::npos) << o.out;
    expect_in("ok a kernel runs after a reset\n", o.out);
    expect_in("  cudaMallocMipmappedArray: cudaErrorNotSupported (801): ", o.err);
    expect_in("verdict   clean\n", o.err);
  }
}

TEST_F(RuntimeProgram, FindingsHaveTheirLine) {
  Outcome o = run("race");
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  expect_in("ok the wrong kernel runs", o.out);
  expect_in("runtime_program.cu:57: race: warp 1 writes 4 bytes at shared memory", o.err);
  expect_in("runtime_program.cu:58: race: warp 1 reads 4 bytes at shared memory", o.err);
  expect_in("verdict   2 findings", o.err);
  o = run("beyond");
  EXPECT_EQ(o.exit, 1);
  EXPECT_EQ(o.out.find("FAILED"), std::string::npos) << o.out;
  expect_in("runtime_program.cu:58: out-of-bounds: write of 4 bytes at 0 bytes past the end", o.err);
  o = run("stale");
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  expect_in("runtime_textures.cu:58: race: texture read of allocation[byte 132], which this launch has written", o.err);
  EXPECT_EQ(run("race", "--strict").exit, 1);
}

TEST_F(RuntimeProgram, StreamsNeedAnOrder) {
  Outcome o = run("ordered");
  EXPECT_EQ(o.exit, 0) << o.out << o.err;
  expect_in("verdict   clean\n", o.err);
  o = run("unordered");
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  expect_in("ok two streams run\n", o.out);
  expect_in(
      "race: (anonymous namespace)::sum(int const*, int*) in stream 2 reads byte 0 of an allocation of 256 bytes, "
      "which (anonymous namespace)::numbers(int*) in stream 1 writes: no event or synchronisation orders them\n",
      o.err);
}
#else
TEST(RuntimeProgram, IsCompiledByNvcc) {
  GTEST_SKIP() << "no nvcc, libcudart.so and cuda.h of CUDA 13.0 when this was built";
}
#endif

}  // namespace
}  // namespace roofgen::test::runtime_test
