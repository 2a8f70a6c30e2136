// Unsupported features and invalid source: one clear error with the user's file and line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/json.h"
#include "check/check.h"
#include "runtime/compiler.h"

namespace roofgen::check::refusals_test {
namespace {

std::string error_of(const std::string& text, const std::string& kernel = "k",
                     const std::string& file = "dir/user.cu") {
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
    for (const char* part : c.parts)
      EXPECT_NE(error.find(part), std::string::npos) << "wanted: " << part << "\n" << error;
    EXPECT_EQ(error.find("/dir/user"), std::string::npos) << error;
    EXPECT_EQ(error.find("generated"), std::string::npos) << error;
  }
}

TEST_F(Refusals, WhatIsNotModelledEndsTheCtasThatComeThere) {
  const std::vector<Case> cases = {
      {"__device__ __noinline__ int f(int n) {\n  return n < 2 ? 1 : n * f(n - 1) - f(n - 2);\n}\n__global__ void k() "
       "{ if (f(clock() + 9) == 3) __trap(); }",
       {"'_Z1fi' calls itself; recursion is not supported", "dir/user.cu:2"}},
      {"__global__ void k() {\n  int* p = (int*)malloc(4);\n  *p = 1;\n  free(p);\n}", {"malloc", "dir/user.cu:2"}},
      {"__global__ void k() {\n  asm volatile(\"sust.p.1d.b32.trap [%0, {%1}], {%1};\" :: \"l\"(0ull), \"r\"(1));\n}",
       {"formatted stores are not supported", "dir/user.cu:2"}},
      {"__device__ float y;\n__global__ void k() {\n  y = texCubemap<float>(7, 1, 0, 1);\n}",
       {"images of kind cube are not supported", "dir/user.cu:3"}},
  };
  for (const Case& c : cases) {
    Request r;
    r.file = "dir/user.cu";
    r.text = c.text;
    r.block = {32, 1, 1};
    const Result<Report> report = run(r);
    ASSERT_TRUE(report) << to_string(report.error());
    const std::string text = check_text(*report, 0);
    EXPECT_EQ(report->verdict(), Verdict::kIncomplete) << text;
    for (const char* part : c.parts)
      EXPECT_NE(text.find(part), std::string::npos) << "wanted: " << part << "\n" << text;
    EXPECT_NE(text.find(": not-modelled: "), std::string::npos) << text;
    EXPECT_NE(text.find("verdict   incomplete: nothing wrong in what ran"), std::string::npos) << text;
  }
}

TEST_F(Refusals, CodeThatNoThreadRanIsIncomplete) {
  Request r;
  r.file = "user.cu";
  r.text =
      "__global__ void k(int mode, int* y) {\n  int v = threadIdx.x;\n  if (mode) {\n    v *= y[v];\n    "
      "y[v] = v / mode;\n  }\n  assert(v >= 0);\n  y[threadIdx.x] = v;\n}";
  r.block = {32, 1, 1};
  const auto arguments = [&](int mode) {
    const auto args = parse_arguments(
        fmt::format(R"([{{"type": "i32", "value": {}}}, {{"type": "i32", "size": 1024, "fill": 1}}])", mode), "a.json",
        "");
    EXPECT_TRUE(args) << to_string(args.error());
    return *args;
  };
  r.args = arguments(0);
  const Result<Report> part = run(r);
  ASSERT_TRUE(part) << to_string(part.error());
  EXPECT_EQ(part->verdict(), Verdict::kIncomplete);
  ASSERT_EQ(part->not_run.size(), 1u) << check_text(*part, 0);
  EXPECT_EQ(part->not_run[0].first, 4);
  EXPECT_EQ(part->not_run[0].last, 5);
  EXPECT_NE(check_text(*part, 0).find("not run   user.cu:4 to 5: no thread came there with these arguments\n"),
            std::string::npos)
      << check_text(*part, 0);
  r.args = arguments(1);
  const Result<Report> whole = run(r);
  ASSERT_TRUE(whole) << to_string(whole.error());
  EXPECT_TRUE(whole->not_run.empty()) << check_text(*whole, 0);
}

/// With .blocksareclusters a grid is of clusters.
TEST(CheckClusters, AreCountedAsTheirCtas) {
  Request r;
  r.file = "k.ptx";
  r.grid = {3, 1, 1}, r.block = {32, 1, 1};
  r.max_findings = 1;
  for (const char* body : {"ret;", "trap;"}) {
    const bool stops = std::string(body) == "trap;";
    r.text = fmt::format(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() .reqntid 32, 1, 1 "
        ".reqnctapercluster 2, 1, 1 .explicitcluster .blocksareclusters\n{{\n{}\n}}\n",
        body);
    const Result<Report> report = run(r);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report->ctas, 6u);
    EXPECT_EQ(report->stopped_early, stops);
    EXPECT_EQ(parse_json(check_json(*report)).at("ctas_total"), 6);
    const std::string text = check_text(*report, 0);
    EXPECT_NE(text.find(stops ? " of 6 CTAs" : "6 of 6 CTAs"), std::string::npos) << text;
    EXPECT_EQ(text.find("stopped at the limit") != std::string::npos, stops) << text;
  }
}

TEST_F(Refusals, SourceThatIsWrong) {
  expect_all({{"__global__ void k() {\n    int a = b;\n}",
               {"dir/user.cu:2:13: error: identifier \"b\" is undefined", "int a = b;\n", "  ^"}},
              {"#include <nowhere.h>\n__global__ void k() {}", {"dir/user.cu:1", "nowhere.h"}}});
}

TEST_F(Refusals, HostCodeThatWasLeftOutIsNamedWhereItIsMissed) {
  expect_all({
      {"int helper(int x) { return getpid() + x; }\n__host__ int marked() { return 1; }\n__global__ void k(int* y) {\n "
       " *y = helper(2) + marked();\n}\nint main() { puts(\"\"); }",
       {"dir/user.cu:4:8: error: identifier \"helper\" is undefined",
        "dir/user.cu:1: note: helper was left out as host code, for: identifier \"getpid\" is undefined",
        "dir/user.cu:2: note: marked was left out as host code: it is marked __host__",
        "note: left out as host code: main (line 6)"}},
      {"struct P {\n  std::vector<int> v;\n};\n__global__ void k(P p) {}",
       {"identifier \"P\" is undefined", "dir/user.cu:1: note: P was left out as host code, for: "}},
      {"#include \"settings.h\"\n__global__ void k() {}", {"settings.h", "-I DIRECTORY adds a header search path"}},
  });
}

std::string refusal(
    const std::string& kernel, const std::string& args,
    const std::string& text =
        "namespace a { template <class T> __global__ void t(T* y, int n) { *y = n; } }\n__global__ void one(float* y, "
        "int n) { *y = n; }\n__global__ void two() {}\n__global__ void over(float*) {}\n__global__ void over(int*) "
        "{}\nstruct S { double d; int i; };\n__global__ void by_value(S s) {}\n") {
  Request r;
  r.file = "user.cu";
  r.text = text;
  r.kernel = kernel;
  auto parsed = parse_arguments(args, "args.json", ".");
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  r.args = *parsed;
  auto report = run(r);
  EXPECT_TRUE(report || report.error().exit == Exit::kUsage);
  return report ? "no error" : to_string(report.error());
}

TEST_F(Refusals, KernelsAndArgumentsThatDoNotFit) {
  const std::string one = R"([{"name": "y", "type": "f32", "size": 1}, {"name": "n", "type": "i32", "value": 1}])";
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"one", one, "no error"},
      {"::one", one, "no error"},
      {"::a::t<double>", R"([{"type": "f64", "size": 1}, {"type": "i32", "value": 1}])", "no error"},
      {"a::t<double>", R"([{"type": "f64", "size": 1}, {"type": "i32", "value": 1}])", "no error"},
      {"", one, "--kernel is needed: the file has one, two, over, over, by_value"},
      {"tow", "[]", "no kernel \"tow\"; did you mean \"two\"?"},
      {"t", one, "t is a template; its arguments were expected, as in --kernel 't<...>'"},
      {"a::t<float, 3>", one,
       "--kernel 'a::t<float, 3>' names no instance of a kernel: its arguments do not fit the template's parameters"},
      {"a::u<float>", one, "names no instance of a kernel"},
      {"over", R"([{"type": "f32", "size": 1}])", "\"over\" is more than one kernel: over(float*), over(int*)"},
      {"over(int*)", R"([{"type": "i32", "size": 1}])", "no error"},
      {"one", R"([{"type": "f32", "size": 1}])", "one takes 2 arguments (float*: 8 bytes, int: 4 bytes), 1 were given"},
      {"one", R"([{"type": "f32", "size": 1}, {"name": "n", "type": "f32", "value": 1}])",
       "n is f32, parameter 2, int, is an integer: i32 or u32 was expected"},
      {"one", R"([{"type": "f32", "size": 1}, {"name": "n", "type": "i64", "value": 1}])",
       "n is i64 of 8 bytes, parameter 2, int, has 4 bytes"},
      {"one", R"([{"name": "y", "type": "i64", "value": 1}, {"type": "i32", "value": 1}])",
       "a buffer with \"size\" or \"null\" was expected"},
      {"by_value", R"([{"name": "s", "type": "f64", "value": 1}])",
       "s is f64 of 8 bytes, parameter 1, S, has 16 bytes; {\"type\": \"struct\""},
      {"by_value", R"([{"name": "s", "type": "struct", "fields": [{"type": "i32", "value": 1}]}])",
       "s is a struct of 4 bytes (fields at 0), parameter 1, S, has 16 bytes"},
      {"by_value",
       R"([{"name": "s", "type": "struct", "fields": [{"type": "f64", "value": 1}, {"type": "i32", "value": 1}]}])",
       "no error"},
      {"two", R"([{"symbol": "c", "type": "f32", "size": 1, "fill": 1}])",
       "the kernel uses no variable \"c\"; it uses none"}};
  for (const auto& [kernel, args, message] : cases)
    EXPECT_NE(refusal(kernel, args).find(message), std::string::npos) << kernel << ": wanted: " << message << "\n"
                                                                      << refusal(kernel, args);
}

TEST_F(Refusals, TemplatesAreListedByTheirNames) {
  const std::string text =
      "template <class T> __global__ void t(T* y) { *y = 1; }\ntemplate <> __global__ void t<int>(int* y) { *y = 2; "
      "}\ntemplate __global__ void t<float>(float*);\ntemplate __global__ void t<double>(double*);\n";
  EXPECT_NE(refusal("", "[]", text).find("as in --kernel 't<...>' (templates: t)"), std::string::npos)
      << refusal("", "[]", text);
}

}  // namespace
}  // namespace roofgen::check::refusals_test
