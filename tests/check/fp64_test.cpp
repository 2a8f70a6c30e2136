// roofgen check --fp64: small kernels that round, and such that are wrong.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "base/json.h"
#include "check/check.h"
#include "kernel_files.h"
#include "runtime/compiler.h"

namespace roofgen::check::fp64_test {
namespace {

Kernel kernel_of(const std::string& name) {
  for (Kernel& k : kernels_in(ROOFGEN_CHECK_FOLDER "/fp64", name))
    if (k.name == name) return std::move(k);
  return {};
}

std::string list_of(const std::vector<double>& numbers) { return fmt::format("[{:.9g}]", fmt::join(numbers, ", ")); }

const BufferInDouble* buffer(const Report& r, const std::string& name) {
  for (const BufferInDouble& b : r.in_double->buffers)
    if (b.name == name) return &b;
  return nullptr;
}

struct Fp64 : testing::Test {
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  }
  void run(const std::string& name) { run(kernel_of(name)); }
  void run(const Kernel& kernel) {
    report.in_double.emplace();
    auto request = request_of(kernel);
    ASSERT_TRUE(request) << to_string(request.error());
    request->in_double = true;
    auto ran = check::run(*request);
    ASSERT_TRUE(ran) << to_string(ran.error());
    report = std::move(*ran);
    ASSERT_TRUE(report.in_double);
    EXPECT_TRUE(report.findings.empty()) << check_text(report, 0);
    text = check_text(report, 0);
  }
  const BufferInDouble& of(const std::string& name) {
    const BufferInDouble* b = buffer(report, name);
    EXPECT_TRUE(b) << name;
    static const BufferInDouble kNone;
    return b ? *b : kNone;
  }
  const DoublePlace& departure(const BufferInDouble& b) {
    return report.in_double->departures.at(b.departs.value_or(0));
  }
  Report report;
  std::string text;
};

TEST_F(Fp64, CancellationIsRounding) {
  run("variance");
  const BufferInDouble& y = of("y");
  EXPECT_EQ(y.rounding, 1u) << text;
  EXPECT_EQ(y.logic, 0u) << text;
  EXPECT_DOUBLE_EQ(y.first_rounding.in_double, 0.98046875);
  ASSERT_TRUE(y.departs) << text;
  EXPECT_EQ(departure(y).source.line, 10) << text;
  EXPECT_EQ(departure(y).why, "cancellation");
  EXPECT_NE(text.find("y: rounding: 1 of 1 wrong elements are as expected in double"), text.npos) << text;
}

TEST_F(Fp64, AWrongFormulaIsLogic) {
  run("variance_around_mean");
  EXPECT_EQ(of("y").rounding, 0u) << text;
  EXPECT_EQ(of("y").logic, 1u) << text;
  EXPECT_FALSE(of("y").departs) << text;
}

TEST_F(Fp64, AWrongIndexIsLogic) {
  run("wrong_index");
  EXPECT_EQ(of("y").logic, 1u) << text;
  EXPECT_EQ(of("y").first_logic.element, 3u) << text;
  EXPECT_LT(of("y").of_element, 1e-7) << text;
  EXPECT_NE(text.find("y: logic: 1 of 1 wrong elements are wrong in double too"), text.npos) << text;
}

TEST_F(Fp64, ACompensatedSumIsRight) {
  run("compensated_sum");
  EXPECT_EQ(of("y").rounding, 1u) << text;
  EXPECT_EQ(of("y").logic, 0u) << text;
  EXPECT_EQ(of("y").first_rounding.element, 0u) << text;
  EXPECT_EQ(of("y").only_rounded, 0u) << text;
}

TEST_F(Fp64, HalvesLoseASum) {
  run("half_sum");
  EXPECT_EQ(of("y").rounding, 32u) << text;
  EXPECT_EQ(of("y").first_rounding.in_double, 38.40625) << text;
}

TEST_F(Fp64, HalvesOverflow) {
  run("half_overflow");
  EXPECT_EQ(of("y").rounding, 32u) << text;
  ASSERT_TRUE(of("y").departs) << text;
  EXPECT_EQ(departure(of("y")).why, "overflow");
  EXPECT_EQ(departure(of("y")).source.line, 5) << text;
  EXPECT_EQ(departure(of("y")).in_double, 90000) << text;
}

TEST_F(Fp64, ComparisonsAndConversionsDecideOtherwise) {
  run("comparison");
  ASSERT_EQ(report.in_double->decisions.size(), 2u) << text;
  EXPECT_EQ(report.in_double->decisions[0].source.line, 7) << text;
  EXPECT_TRUE(report.in_double->decisions[0].compares);
  EXPECT_EQ(report.in_double->decisions[1].source.line, 8) << text;
}

TEST_F(Fp64, ProductsOfMatrices) {
  run("products");
  const BufferInDouble& y = of("y");
  EXPECT_EQ(y.elements, 128u);
  // Rounding to bf16 is seen through shared memory, ldmatrix and mma.
  EXPECT_GT(y.of_largest, 1e-4) << text;
  EXPECT_LT(y.of_largest, 0x1p-7) << text;
}

/// What is exact, or in double, is the same in double.
TEST_F(Fp64, ExactValuesStay) {
  run("exact");
  for (const BufferInDouble& b : report.in_double->buffers) EXPECT_EQ(b.largest_error, 0) << b.name << "\n" << text;
  EXPECT_TRUE(report.in_double->departures.empty()) << text;
  EXPECT_TRUE(report.in_double->decisions.empty()) << text;
}

TEST_F(Fp64, AKernelWithoutFloats) {
  run("no_floats");
  EXPECT_FALSE(report.in_double->floats);
  EXPECT_NE(text.find("in double: the kernel computes with no floats"), text.npos) << text;
}

/// Their results are right to some units in the last place: so the doubles are right, too.
TEST_F(Fp64, FunctionsOfTheLibrary) {
  run("functions");
  EXPECT_LT(of("y").of_largest, 1e-6) << text;
  EXPECT_GT(of("y").of_element, 0) << text;
  EXPECT_FALSE(of("y").departs) << text;
}

TEST_F(Fp64, DoublesMoveWithBits) {
  run("tricks");
  const BufferInDouble& y = of("y");
  EXPECT_GT(y.largest_error, 1e-5) << text;  // of the halves
  EXPECT_LT(y.of_element, 1e-3) << text;
}

TEST_F(Fp64, ClustersExchangeDoubles) {
  run("cluster");
  for (const char* name : {"y", "z"}) {
    EXPECT_GT(of(name).of_element, 0) << text;
    EXPECT_LT(of(name).of_element, 0x1p-23) << text;
  }
}

/// Expected are the products of what was not rounded.
TEST_F(Fp64, ProductsOfFragments) {
  std::vector<double> x, v, halves, tf32, sums(2);
  for (int i = 0; i < 512; ++i) {
    x.push_back(((i * 37 + i / 16 * 11) % 101 - 40) / 64.0);
    v.push_back(x.back() * 1.1f);
  }
  for (int i = 0; i < 256; ++i) {
    halves.push_back(0), tf32.push_back(0);
    for (int k = 0; k < 16; ++k) {
      halves.back() += v[i / 16 * 16 + k] * v[256 + i % 16 * 16 + k];
      tf32.back() += v[i / 16 * 16 + k] * v[i % 16 * 16 + k];
    }
  }
  for (int i = 0; i < 32; ++i) sums[0] += v[i], sums[1] += v[256 + i];
  Kernel kernel = kernel_of("fragments");
  kernel.says["args"] = fmt::format(R"([{{"name": "x", "type": "f32", "size": 512, "values": {}}},
    {{"name": "halves", "type": "f32", "size": 256, "expect": {}, "relative_tolerance": 2e-7}},
    {{"name": "tf32", "type": "f32", "size": 256, "expect": {}, "relative_tolerance": 2e-7}},
    {{"name": "sums", "type": "f16", "size": 2, "expect": {}}}])",
                                    list_of(x), list_of(halves), list_of(tf32), list_of(sums));
  run(kernel);
  for (const char* name : {"halves", "tf32", "sums"}) {
    EXPECT_GE(of(name).rounding, of(name).elements / 2) << name << text;
    EXPECT_EQ(of(name).logic + of(name).only_rounded, 0u) << name << text;
  }
}

TEST_F(Fp64, ProductsOfWarpgroups) {
  run("warpgroup");
  const BufferInDouble& y = of("y");
  EXPECT_EQ(y.elements, 512u);
  EXPECT_GT(y.of_element, 0x1p-13) << text;  // f16
  EXPECT_LT(y.of_element, 0x1p-10) << text;
}

/// Expected is the float nearest to the double: what was rounded to bf16 on its way is wrong, and right in double.
TEST_F(Fp64, DoublesTakeEachWay) {
  Kernel kernel = kernel_of("moves");
  std::vector<double> expected;
  int rounded = 0;
  for (int i = 0; i < 224; ++i) {
    const float v = static_cast<float>(i / 32 == 5 ? 31 : i % 32) * 1.1f;
    expected.push_back(v);
    rounded += i < 64 && std::bit_cast<uint32_t>(v) & 0xffff;
  }
  kernel.says["args"] = fmt::format(R"([{{"name": "x", "type": "f32", "size": 32, "fill": "iota"}},
    {{"name": "y", "type": "f32", "size": 224, "expect": {}}}])",
                                    list_of(expected));
  run(kernel);
  EXPECT_EQ(of("y").rounding, static_cast<uint64_t>(rounded)) << text;
  EXPECT_EQ(of("y").logic + of("y").only_rounded, 0u) << text;
  EXPECT_TRUE(report.in_double->losses.empty()) << text;
}

TEST_F(Fp64, WrittenAsJson) {
  run("variance");
  const Json j = Json::parse(check_json(report));
  EXPECT_EQ(j["fp64"]["buffers"][1]["rounding"], 1);
  const Json& departs = j["fp64"]["places"].at(j["fp64"]["buffers"][1]["departs"].get<size_t>());
  EXPECT_EQ(departs["kind"], "departs");
  EXPECT_EQ(departs["why"], "cancellation");
  EXPECT_EQ(departs["source"]["line"], 10);
}

/// Nothing is different without it, and findings and counts are the same with it.
TEST_F(Fp64, LeavesTheReportAsItIs) {
  const std::set<std::string> names{"matmul_clean", "atomics_half_clean", "race_in_a_function", "wmma_products_clean",
                                    "copy_pipeline_clean"};
  size_t compared = 0;
  for (const Kernel& k : kernels_in(ROOFGEN_CHECK_KERNELS)) {
    if (!names.count(k.name)) continue;
    ++compared;
    auto request = request_of(k);
    ASSERT_TRUE(request);
    auto plain = check::run(*request);
    request->in_double = true;
    auto with = check::run(*request);
    ASSERT_TRUE(plain && with);
    with->in_double.reset();
    EXPECT_EQ(check_json(*plain), check_json(*with)) << k.name;
  }
  EXPECT_EQ(compared, names.size());
}

}  // namespace
}  // namespace roofgen::check::fp64_test
