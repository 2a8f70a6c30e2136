// roofgen check as a user runs it: exit codes, output streams, and one-line errors for bad input.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

namespace roofgen::test::check_test {

namespace {

const char* const kKernels = R"(
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
__global__ void overruns(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];
}
)";

class Check : public ::testing::Test {
 protected:
  void SetUp() override {
    home.write("k.cu", kKernels);
    home.write("args.json", arguments("2000", ", \"dump\": \"y.bin\""));
    home.write("none.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n");
  }
  /// Arguments for k: x holds 1, and `expect` is the expected value of y = 2 x.
  static std::string arguments(const std::string& size, const std::string& of_y = "", const std::string& expect = "2") {
    return "[{\"name\": \"x\", \"type\": \"f32\", \"size\": " + size +
           ", \"fill\": 1},\n {\"name\": \"y\", \"type\": \"f32\", \"size\": " + size + ", \"expect\": " + expect +
           of_y + "},\n {\"name\": \"n\", \"type\": \"i32\", \"value\": 2000}]\n";
  }
  void refused(const std::string& flags, const std::string& message, int exit = 2) {
    const Outcome o = home.run("check " + flags);
    EXPECT_EQ(o.exit, exit) << flags << "\n" << o.out << o.err;
    EXPECT_NE(o.err.find(message), std::string::npos) << flags << "\n" << o.err;
    EXPECT_EQ(o.out, "") << flags;
    EXPECT_FALSE(fs::exists(home.dir() / "y.bin")) << flags;
    EXPECT_FALSE(fs::exists(home.dir() / "f.sarif")) << flags;
  }
  Home home;
};

TEST_F(Check, RoundingOrLogic) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  home.write("v.cu", R"(__global__ void variance(const float* x, float* y) {
  float sum = 0, squares = 0;
  for (int i = 0; i < 4; ++i) {
    sum += x[i] / 4;
    squares += x[i] * x[i] / 4;
  }
  y[0] = squares - sum * sum;
  y[1] = y[0] > 1 ? 1 : 3;
  y[2] = __int_as_float(__float_as_int(y[0]) + 1);
}
)");
  home.write("v.json", R"([
    {"name": "x", "type": "f32", "size": 4, "values": [4096.25, 4097.5, 4098.25, 4095.75]},
    {"name": "y", "type": "f32", "size": 3, "expect": [0.98046875, 2, 0], "ignore": [2],
     "relative_tolerance": 1e-5}])");
  const std::string launch = "check v.cu --block 1 --args v.json --fp64 --schedules 2 ";
  Outcome o = home.run(launch);
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  for (const char* line :
       {"y: rounding: 1 of 2 wrong elements are as expected in double; y[0] is 2, in double 0.9804688",
        "y: logic or a decision that comes out otherwise or rounding that is not followed: 1 of 2 wrong",
        "departs by more than 2^-12 at v.cu:7: 2 is",
        "decides otherwise at v.cu:8: compares 2 and 1, in double 0.98046875 and 1", "not followed at v.cu:9"})
    EXPECT_NE(o.out.find(line), std::string::npos) << line << "\n" << o.out;
  o = home.run(launch + "--json");
  const Json report = Json::parse(o.out);
  expect_schema("check", report);
  EXPECT_EQ(report["fp64"]["places"].size(), 3u) << o.out;
}

TEST_F(Check, CleanFindingsAndWrongOutputs) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string launch = "--grid 8 --block 256 --args args.json ";
  Outcome o = home.run("check k.cu --kernel scale " + launch);
  EXPECT_EQ(o.exit, 0) << o.out << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_NE(o.out.find("verdict   clean"), std::string::npos) << o.out;
  EXPECT_EQ(fs::file_size(home.dir() / "y.bin"), 8000u);

  o = home.run("check k.cu --kernel overruns --sarif f.sarif --json " + launch);
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  const Json report = parse_json(o.out);
  expect_schema("check", report);
  EXPECT_EQ(report["schema"], "roofgen.check.1");
  EXPECT_EQ(report["clean"], false);
  EXPECT_EQ(report["findings"][0]["kind"], "out-of-bounds");
  EXPECT_EQ(report["findings"][0]["source"]["line"], 8);
  const Json sarif = parse_json(home.read("f.sarif"));
  EXPECT_EQ(sarif["version"], "2.1.0");
  EXPECT_EQ(sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 8);

  home.write("args.json", arguments("2000", "", "3"));
  o = home.run("check k.cu --kernel scale " + launch);
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("y[0] is 2, 3 was expected; 2000 of 2000 elements are wrong, by at most 1 (relatively 0.33)\n"),
            std::string::npos)
      << o.out;
}

TEST_F(Check, JsonMatchesItsSchema) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  // All parts of a report: host code, a note, printed text, a finding with its CTAs, outputs of every kind.
  home.write(
      "all.cu",
      "#include <iostream>\nint helper() { return std::cout.good(); }\n"
      "__global__ void k(float* y, int* z, float* w) {\n  __shared__ int s[64];\n  if (threadIdx.x == 0) "
      "printf(\"here\\n\");\n"
      "  if (blockIdx.x == 0) y[threadIdx.x] = s[threadIdx.x];\n  z[threadIdx.x] = 3;\n  w[0] = 1;\n  y[99] = 2;\n}\n");
  home.write(
      "all.json",
      R"([{"name": "y", "type": "f32", "size": 64, "expect": ["nan", )" +
          [] {
            std::string all;
            for (int i = 1; i < 64; ++i) all += i > 1 ? ", 1" : "1";
            return all;
          }() +
          R"(]}, {"name": "z", "type": "f32", "size": 32, "dump": "z.bin"}, {"name": "w", "type": "f32", "size": 2, "expect": 1}])");
  const Outcome o = home.run("check all.cu --grid 3 --block 32 --args all.json --json");
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  const Json report = parse_json(o.out);
  expect_schema("check", report);
  for (const char* key : {"left_out", "notes", "findings", "outputs", "lines"})
    EXPECT_FALSE(report[key].empty()) << key << o.out;
  EXPECT_EQ(report["printed"], "here\nhere\nhere\n");
  EXPECT_EQ(report["outputs"][0]["likely_consequence"], true);
  EXPECT_FALSE(report["outputs"][1].contains("mismatches"));
  EXPECT_EQ(report["outputs"][2]["mismatches"], 1);
  // PTX has no line table and needs no compilation.
  home.write("k.ptx",
             ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; add.s32 %r1, %r2, "
             "1; ret; }\n");
  expect_schema("check", parse_json(home.run("check k.ptx --block 32 --json").out));
}

TEST_F(Check, ErrorsSuggestTheFlagThatHelps) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  home.write("grid.cu",
             "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_grid().sync(); }\n");
  const Outcome o = home.run("check grid.cu --grid 2 --block 32");
  if (o.err.find("cooperative_groups.h") != std::string::npos) GTEST_SKIP() << "no toolkit on this machine";
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("needs --cooperative"), std::string::npos) << o.out;
  EXPECT_EQ(home.run("check grid.cu --grid 2 --block 32 --cooperative").exit, 0);
  home.write("dynamic.cu", "__global__ void k() { extern __shared__ volatile int s[]; s[12287] = 1; }\n");
  for (const char* smem : {"49152", "49152B", "48K", "48KiB"})
    EXPECT_EQ(home.run(std::string("check dynamic.cu --block 1 --smem ") + smem).exit, 0) << smem;
  EXPECT_EQ(home.run("check dynamic.cu --block 1 --smem 47K").exit, 1);
  // nvrtcGetPTX counts the terminating zero.
  home.write("zero.ptx",
             std::string(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n") + '\0');
  EXPECT_EQ(home.run("check zero.ptx --block 32").exit, 0);
}

TEST_F(Check, AnyNumberOfCoresGivesTheSame) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  home.write("args.json", arguments("2097152"));
  const std::string flags =
      "check k.cu --kernel overruns --grid 8192 --block 256 --args args.json --json --jobs ";  // 1 M warp-instructions
  const Outcome one = home.run(flags + "1"), four = home.run(flags + "4");
  EXPECT_EQ(one.exit, 0) << one.out << one.err;
  EXPECT_EQ(one.out, four.out);
}

TEST_F(Check, RequestsThatCannotBe) {
  refused("k.cu --block 2048",
          "--block is 2048; at most 1024 threads in x, 1024 in y and 64 in z were expected, 1024 in all");
  refused("k.cu --block 64,32", "--block is 64,32; at most 1024 threads");
  refused("k.cu --block 99999999999999999999", "--block is 99999999999999999999; at most 1024 threads");
  refused("k.cu --block 32 --grid 5000000000", "--grid is 5000000000; at most 2147483647 CTAs in x");
  refused("k.cu --block 32 --grid -1", "--grid is '-1'; one to three numbers of at least 1");
  refused("k.cu --block 8,8,65", "--block is 8,8,65");
  refused("k.cu --block 0", "--block is '0'; one to three numbers of at least 1");
  refused("k.cu --block 32,", "--block is '32,'");
  refused("k.cu --block 32 --grid 1,70000", "--grid is 1,70000; at most");
  refused("k.cu --block 32 --arch h100", "--arch is 'h100'; an architecture was expected");
  refused("k.cu", "--block");
  refused("nowhere.cu --block 32", "nowhere.cu");
  refused("k.cu --block 32 --args nowhere.json", "nowhere.json");
  refused("k.cu --block 32 --smem 999999", "--smem is '999999'; at most 232448 bytes (227K) were expected");
  refused("k.cu --block 32 --smem 228K", "--smem is '228K'; at most");
  refused("k.cu --block 32 --smem 48M", "--smem is '48M'; bytes were expected, as in 49152 or 48K");
  refused("k.cu --block 32 --smem -1", "--smem is '-1'; bytes were expected");
  refused("k.cu --block 32 --top -1", "--top");
  refused("k.cu --block 32 -I nowhere", "Directory does not exist: nowhere");
  refused("k.cu --block 32 --jobs 0", "jobs");
  refused("k.cu --block 32 --args args.json --sarif no/such/f.sarif", "there is no folder no/such", 1);
  refused("k.cu --block 32 --kernal scale", "--kernal");
  refused("none.ptx --block 32", "none.ptx: error: no kernel in it; an .entry with a body was expected");
  refused("none.ptx --block 32 -I . -D A=1 --fast-math --arch sm_80",
          "none.ptx is PTX, which is compiled already; -I, -D, --fast-math, --arch would do nothing");
  home.write("source.ptx", kKernels);
  refused("source.ptx --block 32", "source.ptx: error: CUDA C++, in a file that is taken as PTX by its name");
  home.write("ptx.cu", "// of a compiler\n/* with comments */\n.version 8.0\n.target sm_90\n");
  refused("ptx.cu --block 32", "ptx.cu: error: PTX, in a file that is taken as CUDA C++");
  home.write("bad.json", "[{\"type\": \"f32\" \"size\": 3}]");
  refused("k.cu --block 32 --args bad.json", "bad.json:1:");
}

TEST_F(Check, RequestsThatDoNotFitTheKernel) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "no NVRTC on this machine";
  refused("k.cu --block 32 --args args.json", "scale");
  refused("k.cu --block 32 --arch sm_99", "--arch is 'sm_99'; an architecture was expected: sm_");
  refused("k.cu --block 32 --args args.json --kernel scael", "scale");
  home.write("two.json", "[{\"type\": \"f32\", \"size\": 3}, {\"type\": \"f32\", \"size\": 3}]");
  refused("k.cu --block 32 --args two.json --kernel scale", "3");
  home.write("bounded.cu",
             "__global__ void __launch_bounds__(64) few() {}\n__global__ void much() { __shared__ volatile int "
             "x[9000]; x[threadIdx.x] = 1; }\n");
  refused("bounded.cu --kernel few --block 128", "few: 128 threads are over the kernel's declared maximum of 64");
  refused(
      "bounded.cu --kernel much --block 32 --smem 70000 --arch sm_86",
      "much: 106000 bytes of shared memory, 70000 of them by --smem, are over the 101376 that a CTA can have on sm_86");
  home.write("many.cu",
             "__global__ void many(float* x) {\n  float a[150];\n"
             "#pragma unroll\n  for (int i = 0; i < 150; ++i) a[i] = x[i * 1024 + threadIdx.x];\n  __syncthreads();\n"
             "#pragma unroll\n  for (int i = 0; i < 150; ++i) x[i * 1024 + threadIdx.x] = a[149 - i];\n}\n");
  home.write("many.json", "[{\"type\": \"f32\", \"size\": 153600, \"fill\": 1}]");
  refused("many.cu --block 1024 --args many.json", "many: a block of 1024 threads with 1");
  refused("many.cu --block 416 --args many.json", "; __launch_bounds__(416) makes the compiler use fewer registers");
  EXPECT_EQ(home.run("check many.cu --block 256 --args many.json").exit, 0);
  home.write("wrong.cu", "__global__ void k(float* x) { x[0] = y; }\n");
  refused("wrong.cu --block 32 --args args.json", "wrong.cu:1:", 1);
}

}  // namespace

}  // namespace roofgen::test::check_test
