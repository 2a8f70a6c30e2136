// What the simulator has not, and source that is wrong: one clear error with the user's own file and line.
#include <gtest/gtest.h>

#include "check/check.h"
#include "runtime/compiler.h"

namespace roofgen::check {
namespace {

std::string error_of(const std::string& text, const std::string& kernel = "k", const std::string& file = "dir/user.cu") {
  Request r;
  r.file = file;
  r.text = text;
  r.kernel = kernel;
  auto report = run(r);
  return report ? "no error" : to_string(report.error());
}

struct Case {
  const char* text;
  std::vector<const char*> parts;
};

class Refusals : public testing::Test {
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  }
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string error = error_of(c.text);
    for (const char* part : c.parts) EXPECT_NE(error.find(part), std::string::npos) << "wanted: " << part << "\n" << error;
    EXPECT_EQ(error.find("/dir/user"), std::string::npos) << error;
    EXPECT_EQ(error.find("generated"), std::string::npos) << error;
  }
}

TEST_F(Refusals, WhatTheSimulatorHasNot) {
  expect_all({
      {"__device__ __noinline__ int f(int n) {\n  return n < 2 ? 1 : n * f(n - 1) - f(n - 2);\n}\n__global__ void k() { if (f(clock()) == 3) __trap(); }", {"'_Z1fi' calls itself; recursion is not supported", "dir/user.cu:2"}},
      {"__device__ __noinline__ void a() { __syncthreads(); }\n__device__ __noinline__ void b() { __syncwarp(); }\n__global__ void k() {\n  void (*f[2])() = {a, b};\n  f[clock() % 2]();\n}", {"calls through pointers are not supported"}},
      {"__global__ void k() {\n  int* p = (int*)malloc(4);\n  *p = 1;\n  free(p);\n}", {"malloc", "dir/user.cu:2"}},
      {"__global__ void k() {\n  float v;\n  asm volatile(\"tex.1d.v4.f32.s32 {%0, %0, %0, %0}, [%1, {%2}];\" : \"=f\"(v) : \"l\"(0ull), \"r\"(1));\n}", {"textures are not supported", "dir/user.cu:3"}},
      {"__global__ void k() {\n  asm volatile(\"sust.b.1d.b32.trap [%0, {%1}], {%1};\" :: \"l\"(0ull), \"r\"(1));\n}", {"surfaces are not supported", "dir/user.cu:2"}},
  });
}

TEST_F(Refusals, SourceThatIsWrong) {
  expect_all({{"__global__ void k() {\n    int a = b;\n}", {"dir/user.cu:2:13: error: identifier \"b\" is undefined", "int a = b;\n", "  ^"}}, {"#include <nowhere.h>\n__global__ void k() {}", {"dir/user.cu:1", "nowhere.h"}}});
}

}  // namespace
}  // namespace roofgen::check
