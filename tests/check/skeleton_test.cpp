// --emit-args: the launch that a source states, and arguments that fit the kernel. And the progress of a long run.
#include "check/skeleton.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/shell.h"
#include "runtime/compiler.h"

namespace roofgen::check::skeleton_test {
namespace {

std::string launch(const std::string& source) {
  std::string out;
  for (const SourceLaunch& l : launches_in(source))
    out += l.kernel + " " + std::to_string(l.line) + ": " + l.grid + " x " + l.block + ", " + l.smem + "\n";
  return out;
}

TEST(Skeleton, LaunchesOfASource) {
  EXPECT_EQ(launch("k<<<4, 256>>>(x);"), "k 1: 4 x 256, 0\n");
  EXPECT_EQ(launch("\nk<float, 4> <<< dim3(2, 3), 32 * 4, 8 * sizeof(float), stream>>>(x);"), "k 2: 2,3 x 128, 32\n");
  EXPECT_EQ(launch("#define N 1000\nconst int T = 256;\nk<<<(N + T - 1) / T, T>>>();"), "k 3: 4 x 256, 0\n");
  EXPECT_EQ(launch("dim3 g(8, 4), b;\ndim3 threads = dim3(16, 16);\nk<<<g, threads>>>();"), "k 3:  x 16,16, 0\n");
  EXPECT_EQ(launch("int n = 4; n = 5; int m = atoi(s); k<<<n, m>>>();"), "k 1: 4 x , 0\n");
  EXPECT_EQ(launch("{ int n = 4; } { int n = 5; k<<<1, n>>>(); }"), "k 1: 1 x , 0\n");  // one of two
  EXPECT_EQ(launch("// k<<<1, 2>>>\nprintf(\"k<<<1, 2>>>\"); x = a <<< 3;"), "");
  for (const char* text : {"<<<", "<<<>>>", "<<<,>>>", ">>><<<", "k<<<1/0, 1>>>", "#define A A\nk<<<A, A>>>",
                           "><<<1,1>>>", "k<<<-1, 99999999999999999999>>>"})
    launch(text);
}

class SkeletonOf : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
    request_.file = "k.cu";
  }
  void make(const std::string& text) {
    request_.text = text;
    auto made = make_skeleton(request_);
    ASSERT_TRUE(made) << to_string(made.error());
    made_ = std::move(*made);
  }
  /// The arguments fit: the kernel runs with them.
  void expect_runs() {
    request_.args = *parse_arguments(made_.json, "args.json", ".");
    const auto report = run(request_);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_NE(report->verdict(), Verdict::kFindings);
  }
  Request request_;
  Skeleton made_;
};

TEST_F(SkeletonOf, AKernelAndItsLaunch) {
  ASSERT_NO_FATAL_FAILURE(make(
      "struct View { float* p; int n; };\n__global__ void k(const float* x, float4* __restrict__ y, const int* index, "
      "unsigned char flag,\n  double scale, float2 pair, View view, void* any) {}\nint main() { k<<<dim3(2, 2), 64, "
      "1024>>>(); }\n"));
  EXPECT_EQ(made_.flags, "--kernel k --grid 2,2 --block 64 --smem 1024");
  EXPECT_EQ(made_.json,
            R"([{"name":"x","type":"f32","size":4096,"fill":"random"},
 {"name":"y","type":"f32","size":16384},
 {"name":"index","type":"i32","size":4096,"fill":"random","range":[0,63]},
 {"name":"flag","type":"u8","value":1},
 {"name":"scale","type":"f64","value":1.0},
 {"name":"pair","type":"f32x2","value":[1.0,1.0]},
 {"name":"view","type":"bytes","value":"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
 {"name":"any","type":"u8","size":4096}]
)");
  ASSERT_EQ(made_.notes.size(), 1u);
  request_.grid = {2, 2, 1};
  request_.block = {64, 1, 1};
  expect_runs();
}

TEST_F(SkeletonOf, ATensorMap) {
  request_.arch = "sm_90a";
  ASSERT_NO_FATAL_FAILURE(make("#include <cuda.h>\n__global__ void k(const __grid_constant__ CUtensorMap a_map) {}\n"));
  EXPECT_EQ(made_.json, R"([{"name":"a_map","type":"bf16","size":4096,"fill":"random",)"
                        R"("map":{"dims":[64,64],"box":[64,64],"swizzle":0}}]
)");
  expect_runs();
}

TEST_F(SkeletonOf, ObjectsAndArrays) {
  ASSERT_NO_FATAL_FAILURE(make(
      "__global__ void k(cudaTextureObject_t image, cudaSurfaceObject_t out, float x[][32], const int y[4]) {}\n"));
  EXPECT_EQ(made_.json,
            R"([{"name":"image","type":"f32","size":4096,"fill":"random","texture":{"dims":[64,64]}},
 {"name":"out","type":"f32","size":4096,"fill":"random","surface":{"dims":[64,64]}},
 {"name":"x","type":"f32","size":4096},
 {"name":"y","type":"i32","size":4096,"fill":"random","range":[0,63]}]
)");
  expect_runs();
}

TEST_F(SkeletonOf, NamesThatAreNotMangled) {
  ASSERT_NO_FATAL_FAILURE(
      make("extern \"C\" __global__ void k(const unsigned int* n, unsigned long long m, float y[4]) {}\n"));
  EXPECT_EQ(made_.json, R"([{"name":"n","type":"u32","size":4096,"fill":"random","range":[0,63]},
 {"name":"m","type":"u64","value":64},
 {"name":"y","type":"f32","size":4096}]
)");
  EXPECT_EQ(made_.notes,
            std::vector<std::string>{"the file launches this kernel nowhere: placeholders for --grid, --block"});
}

TEST(Skeleton, WordsOfTheCommandAreQuotedWhereAShellNeedsIt) {
  EXPECT_EQ(shell_word("../a_b-1/k.cu"), "../a_b-1/k.cu");
  EXPECT_EQ(shell_word("day 23/k.cu"), "'day 23/k.cu'");
  EXPECT_EQ(shell_word("scale<float>"), "'scale<float>'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Progress, NamesThePlacesOfTheRunningWarps) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  Request r;
  r.file = "../k.cu";
  r.text = "__global__ void k() {\n  if (threadIdx.x > 31) return;\n  for (volatile int i = 0;;)\n    i = i + 1;\n}\n";
  r.grid = {1, 1, 1};
  r.block = {64, 1, 1};
  r.max_instructions = 150'000'000;
  r.progress_after_s = 0.25;
  std::vector<std::string> lines;
  r.progress = [&](const std::string& line) { lines.push_back(line); };
  const auto report = run(r);
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find(" warp-instructions; running ../k.cu:"), std::string::npos) << lines.front();
  EXPECT_NE(lines.front().find("../k.cu:4"), std::string::npos) << lines.front();
  EXPECT_EQ(lines.front().find("../k.cu:2"), std::string::npos) << lines.front();
}

}  // namespace
}  // namespace roofgen::check::skeleton_test
